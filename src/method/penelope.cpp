#include "method/penelope.h"

#include "method/penelope_steps.h"

#include <algorithm>
#include <numeric>

namespace penelope {

namespace {

struct TrajectoryGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr;
    std::unique_ptr<RowInputs> all, memory, last;
    Node                       index = nullptr; // of the kept rows
    Trajectory                 trajectory{};
    Node                       logits = nullptr;
};

void make_row_inputs(TrajectoryGraph & built, const BatchLayout & p, bool exact) {
    Graph & g    = built.graph;
    built.ids    = g.input("ids", GGML_TYPE_I32, int64_t(p.ids.size()));
    built.all    = std::make_unique<RowInputs>(g, "rows", p.all(), exact);
    built.memory = std::make_unique<RowInputs>(g, "memory", p.memory, exact);
}

TrajectoryRows rows_of(TrajectoryGraph & built, int n_sequences) {
    TrajectoryRows rows;
    rows.all              = built.all->rows();
    rows.prompt           = built.all->subset(built.graph, 0, n_sequences);
    rows.interface_target = built.all->subset(built.graph, n_sequences, n_sequences);
    rows.memory           = built.memory->rows();
    return rows;
}

void fill_inputs(TrajectoryGraph & built, const BatchLayout & p, const Context & context, const SequenceCache & cache,
                 const LatentShape & shape) {
    built.graph.set(built.ids, p.ids);
    built.all->fill(p.all(), &cache);
    built.memory->fill(p.memory, &cache);
    if (built.last) {
        const int n_before = shape.end < context.model().config.n_layer ? p.n_prompt : 0;
        built.last->fill(p.last, &cache);
        built.graph.set(built.index, last_index(n_before, int(p.memory.size()), shape));
    }
}

} // namespace

PenelopeMethod::PenelopeMethod(const PenelopeModules & modules, const LatentShape & shape, std::vector<TimeStep> steps,
                               int k_default)
    : modules_(modules), shape_(shape), steps_(std::move(steps)), k_default_(k_default) {}

Prefill PenelopeMethod::prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const {
    Prefill                prefilled;
    const std::vector<int> n_done      = prefill_leading_chunks(context, prompts, prefilled.layer_applications);
    const int              bucket      = context.options().bucket;
    const BatchLayout      p           = make_batch_layout(context, prompts, n_done, shape_, bucket);
    const int              n_sequences = int(prompts.size());

    TrajectoryGraph & built = context.graph<TrajectoryGraph>(p.key("penelope", n_steps), p.streams(), [&]() {
        auto    fresh = std::make_unique<TrajectoryGraph>(context, n_sequences);
        Graph & g     = fresh->graph;
        make_row_inputs(*fresh, p, bucket == 1);
        fresh->last           = std::make_unique<RowInputs>(g, "last", p.last, bucket == 1);
        fresh->index          = g.input("last.index", GGML_TYPE_I32, n_sequences);
        TrajectoryRows rows   = rows_of(*fresh, n_sequences);
        rows.output.index     = fresh->index;
        rows.output.positions = fresh->last->rows().positions;
        rows.output.segments  = fresh->last->rows().segments;
        Node prompt           = embed(g, context.model().embedding, fresh->ids);
        fresh->trajectory     = build_trajectory(g, context.model(), modules_, shape_, steps_, n_steps, prompt, nullptr,
                                                 n_sequences, rows, context.cache());
        fresh->logits         = logits(g, context.model(), fresh->trajectory.output);
        g.output(fresh->logits);
        return fresh;
    });
    context.prepare(built);
    fill_inputs(built, p, context, context.cache(), shape_);
    context.compute(built);
    context.count_token_rows(p.ids.size());

    prefilled.logits = get_rows(built.logits);
    prefilled.n_past = rows_after(prompts, shape_);
    prefilled.layer_applications += built.graph.n_layer_applications();
    return prefilled;
}

std::vector<StateTensor> PenelopeMethod::states(Context & context, const Prompt & prompt, int n_steps) const {
    int                    applications = 0;
    const std::vector<int> n_done       = prefill_leading_chunks(context, { prompt }, applications);
    const BatchLayout      p            = make_batch_layout(context, { prompt }, n_done, shape_, 1);

    TrajectoryGraph & built = context.graph<TrajectoryGraph>(p.key("penelope-states", n_steps), p.streams(), [&]() {
        auto    fresh = std::make_unique<TrajectoryGraph>(context);
        Graph & g     = fresh->graph;
        make_row_inputs(*fresh, p, true);
        TrajectoryRows rows   = rows_of(*fresh, 1);
        rows.output.first     = shape_.end < context.model().config.n_layer ? p.n_prompt : 0;
        rows.output.count     = shape_.n_interface();
        rows.output.positions = rows.interface_target.positions;
        rows.output.segments  = rows.interface_target.segments;
        Node         embedded = embed(g, context.model().embedding, fresh->ids);
        Trajectory & t        = fresh->trajectory;
        t = build_trajectory(g, context.model(), modules_, shape_, steps_, n_steps, embedded, nullptr, 1, rows,
                             context.cache());
        fresh->logits = logits(g, context.model(), slice_rows(g, t.output, shape_.n_interface() - 1, 1));
        // Views keep their source alive only as long as the source itself is kept.
        for (Node * node : { &t.prompt, &t.memory[0], &t.readout[0] }) {
            *node = ggml_cont(g.ctx(), *node);
        }
        for (const std::vector<Node> * list : { &t.memory, &t.readout, &t.features, &t.modulated, &t.proposal }) {
            std::for_each(list->begin(), list->end(), [&](Node node) { g.output(node); });
        }
        g.output(t.prompt);
        g.output(t.output);
        g.output(fresh->logits);
        return fresh;
    });
    context.prepare(built);
    fill_inputs(built, p, context, context.cache(), shape_);
    context.compute(built);
    context.count_token_rows(p.ids.size());

    std::vector<StateTensor> states;
    const auto               put = [&](const std::string & name, Node node) {
        states.push_back({ name, { node->ne[1], node->ne[0] }, get_node(node) });
    };
    const Trajectory & t = built.trajectory;
    put("H_x", t.prompt);
    put("M_0", t.memory[0]);
    put("R_0", t.readout[0]);
    for (size_t i = 1; i < t.memory.size(); i++) {
        const std::string n = std::to_string(i);
        put("H_" + n, t.features[i - 1]);
        if (!t.modulated.empty()) {
            put("Hhat_" + n, t.modulated[i - 1]);
        }
        put("M_" + n, t.memory[i]);
        put("q_" + n, t.proposal[i - 1]);
        put("R_" + n, t.readout[i]);
        states.push_back({ "alpha_" + n, { 1 }, { 2.0f * get_node(steps_[i - 1].update_rate)[0] } }); // Equation 8
    }
    put("interface_out", t.output);
    states.push_back({ "first_logits", { built.logits->ne[0] }, get_node(built.logits) });
    return states;
}

LatentSteps * PenelopeMethod::steps(Context & context) const {
    return &context.extension<PenelopeSteps>(this, [&]() { return std::make_unique<PenelopeSteps>(*this, context); });
}

// Boundary, prompt cache and refinements once, a final pass for each K.
void PenelopeMethod::sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                           const std::function<void(int, const Prefill &)> & answer) const {
    LatentSteps &    steps_of = *this->steps(context);
    std::vector<int> streams(prompts.size());
    std::iota(streams.begin(), streams.end(), 0);
    steps_of.start(fresh_prompts(prompts));
    std::vector<std::vector<StateTensor>> before(prompts.size());
    int                                   t = 0;
    for (int k : steps) {
        for (; t < k; t++) {
            for (int stream : streams) {
                before[size_t(stream)] = steps_of.read_state(stream);
            }
            steps_of.advance(streams);
        }
        Prefill prefilled = steps_of.finish(streams);
        for (int stream : streams) {
            prefilled.step_cosine.push_back(t > 0 ? readout_cosine(before[size_t(stream)], steps_of.read_state(stream))
                                                  : -1.0f);
        }
        answer(k, prefilled);
    }
}

} // namespace penelope
