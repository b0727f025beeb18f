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

void make_row_inputs(TrajectoryGraph & built, const Placement & p, bool exact) {
    Graph & g    = built.graph;
    built.ids    = g.input("ids", GGML_TYPE_I32, int64_t(p.ids.size()));
    built.all    = std::make_unique<RowInputs>(g, "rows", p.all(), exact);
    built.memory = std::make_unique<RowInputs>(g, "memory", p.memory, exact);
}

TrajectoryRows rows_of(TrajectoryGraph & built, int n_sequences) {
    TrajectoryRows rows;
    rows.all    = built.all->rows();
    rows.prompt = built.all->part(built.graph, 0, n_sequences);
    rows.latter = built.all->part(built.graph, n_sequences, n_sequences);
    rows.memory = built.memory->rows();
    return rows;
}

void fill_inputs(TrajectoryGraph & built, const Placement & p, const Context & context, const SequenceCache & cache,
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

Filled PenelopeMethod::fill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const {
    Filled                 filled;
    const std::vector<int> n_done      = send_ahead(context, prompts, filled.layer_applications);
    const int              bucket      = context.options().bucket;
    const Placement        p           = place(context, prompts, n_done, shape_, bucket);
    const int              n_sequences = int(prompts.size());

    TrajectoryGraph & built = context.graph<TrajectoryGraph>(p.key("penelope", n_steps), p.streams(), [&]() {
        auto    fresh = std::make_unique<TrajectoryGraph>(context, n_sequences);
        Graph & g     = fresh->graph;
        make_row_inputs(*fresh, p, bucket == 1);
        fresh->last         = std::make_unique<RowInputs>(g, "last", p.last, bucket == 1);
        fresh->index        = g.input("last.index", GGML_TYPE_I32, n_sequences);
        TrajectoryRows rows = rows_of(*fresh, n_sequences);
        rows.kept.index     = fresh->index;
        rows.kept.positions = fresh->last->rows().positions;
        rows.kept.segments  = fresh->last->rows().segments;
        Node prompt         = embed(g, context.model().embedding, fresh->ids);
        fresh->trajectory   = build_trajectory(g, context.model(), modules_, shape_, steps_, n_steps, prompt, nullptr,
                                               n_sequences, rows, context.cache());
        fresh->logits       = logits(g, context.model(), fresh->trajectory.kept);
        g.output(fresh->logits);
        return fresh;
    });
    context.prepare(built);
    fill_inputs(built, p, context, context.cache(), shape_);
    context.compute(built);
    context.count_token_rows(p.ids.size());

    filled.logits = get_rows(built.logits);
    filled.n_rows = rows_after(prompts, shape_);
    filled.layer_applications += built.graph.n_layer_applications();
    return filled;
}

std::vector<StateTensor> PenelopeMethod::states(Context & context, const Prompt & prompt, int n_steps) const {
    int                    applications = 0;
    const std::vector<int> n_done       = send_ahead(context, { prompt }, applications);
    const Placement        p            = place(context, { prompt }, n_done, shape_, 1);

    TrajectoryGraph & built = context.graph<TrajectoryGraph>(p.key("penelope-states", n_steps), p.streams(), [&]() {
        auto    fresh = std::make_unique<TrajectoryGraph>(context);
        Graph & g     = fresh->graph;
        make_row_inputs(*fresh, p, true);
        TrajectoryRows rows   = rows_of(*fresh, 1);
        rows.kept.first       = shape_.end < context.model().config.n_layer ? p.n_prompt : 0;
        rows.kept.count       = shape_.n_interface();
        rows.kept.positions   = rows.latter.positions;
        rows.kept.segments    = rows.latter.segments;
        Node         embedded = embed(g, context.model().embedding, fresh->ids);
        Trajectory & t        = fresh->trajectory;
        t = build_trajectory(g, context.model(), modules_, shape_, steps_, n_steps, embedded, nullptr, 1, rows,
                             context.cache());
        fresh->logits = logits(g, context.model(), slice_rows(g, t.kept, shape_.n_interface() - 1, 1));
        // Views keep their source alive only as long as the source itself is kept.
        for (Node * node : { &t.prompt, &t.memory[0], &t.readout[0] }) {
            *node = ggml_cont(g.ctx(), *node);
        }
        for (const std::vector<Node> * list : { &t.memory, &t.readout, &t.features, &t.modulated, &t.proposal }) {
            std::for_each(list->begin(), list->end(), [&](Node node) { g.output(node); });
        }
        g.output(t.prompt);
        g.output(t.kept);
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
        states.push_back({ "alpha_" + n, { 1 }, { 2.0f * get_node(steps_[i - 1].pull)[0] } }); // Equation 8
    }
    put("interface_out", t.kept);
    states.push_back({ "first_logits", { built.logits->ne[0] }, get_node(built.logits) });
    return states;
}

LatentSteps * PenelopeMethod::steps(Context & context) const {
    return &context.part<PenelopeSteps>(this, [&]() { return std::make_unique<PenelopeSteps>(*this, context); });
}

// Boundary, prompt cache and refinements once, a final pass for each K.
void PenelopeMethod::sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                           const std::function<void(int, const Filled &)> & answer) const {
    LatentSteps &    thinking = *this->steps(context);
    std::vector<int> streams(prompts.size());
    std::iota(streams.begin(), streams.end(), 0);
    thinking.start(fresh_prompts(prompts));
    std::vector<std::vector<StateTensor>> before(prompts.size());
    int                                   t = 0;
    for (int k : steps) {
        for (; t < k; t++) {
            for (int stream : streams) {
                before[size_t(stream)] = thinking.look(stream);
            }
            thinking.advance(streams);
        }
        Filled filled = thinking.finish(streams);
        for (int stream : streams) {
            filled.settled.push_back(t > 0 ? readout_cosine(before[size_t(stream)], thinking.look(stream)) : -1.0f);
        }
        answer(k, filled);
    }
}

} // namespace penelope
