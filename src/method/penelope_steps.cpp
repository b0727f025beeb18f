#include "method/penelope_steps.h"

#include "base/error.h"

#include <algorithm>

namespace penelope {

namespace {

// n_kv is rounded up to a multiple of this, so that one graph serves many prompt lengths; the mask hides the rest.
constexpr int kBucket = 64;

// One value of every step after the other: [n, k_max].
std::vector<float> table(const std::vector<TimeStep> & steps, Node TimeStep::*value, int64_t n) {
    std::vector<float> all;
    for (const TimeStep & step : steps) {
        const std::vector<float> row = get_node(step.*value);
        for (int64_t i = 0; i < n; i++) {
            all.push_back(row[size_t(i) % row.size()]);
        }
    }
    return all;
}

// Each stream gets the next one's place, the last the first's.
std::vector<int> swapped(std::vector<int> streams) {
    if (streams.size() < 2) {
        throw Error(ErrorKind::usage, "swapped memories: a batch of one question has no other memory to take",
                    "choose --batch-size and --limit so that no batch has a single question");
    }
    std::rotate(streams.begin(), streams.begin() + 1, streams.end());
    return streams;
}

template <typename T> std::vector<T> as(const std::vector<int> & values) {
    return std::vector<T>(values.begin(), values.end());
}

} // namespace

// Boundary and prompt cache; stores M_0 and R_0.
struct PenelopeSteps::StartGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr, streams = nullptr;
    std::unique_ptr<RowInputs> all;
    int                        n_applications = 0;
};

// One refinement; streams may be at different steps.
struct PenelopeSteps::RefineGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       from = nullptr, to = nullptr;  // the streams, to read and to write
    Node                       t = nullptr, t_rows = nullptr; // row of the tables, per stream and per memory row
    std::unique_ptr<RowInputs> rows;
};

// The interface rows through [s:L), over a cache that holds the prompt in every layer.
struct PenelopeSteps::FinalGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       from = nullptr, index = nullptr, logits = nullptr;
    std::unique_ptr<RowInputs> rows, last;
};

PenelopeSteps::PenelopeSteps(const PenelopeMethod & method, Context & context)
    : method_(method), context_(context), d_(context.model().config.n_embd), store_(context.latent_device(), false),
      streams_(size_t(context.options().n_streams)) {
    const LatentShape &           shape = method.shape();
    const std::vector<TimeStep> & steps = method.time_steps();
    const int64_t                 n = context.options().n_streams, k = int64_t(steps.size()), d = d_;
    memory_        = store_.add_empty("steps.memory", GGML_TYPE_F32, { d * shape.n_memory, n });
    features_      = store_.add_empty("steps.features", GGML_TYPE_F32, { d * shape.n_memory, n });
    readout_       = store_.add_empty("steps.readout", GGML_TYPE_F32, { d * shape.n_readout, n });
    offsets_       = store_.add_host("steps.offset", { d * shape.n_memory, k },
                                     table(steps, &TimeStep::memory_offset, d * shape.n_memory));
    readout_steps_ = store_.add_host("steps.readout.step", { d, k }, table(steps, &TimeStep::readout_step, d));
    gains_         = store_.add_host("steps.gain", { d, k }, table(steps, &TimeStep::gain, d));
    shifts_        = store_.add_host("steps.shift", { d, k }, table(steps, &TimeStep::shift, d));
    update_rates_  = store_.add_host("steps.update_rate", { d, k }, table(steps, &TimeStep::update_rate, d));
    store_.load();
}

PenelopeSteps::~PenelopeSteps() = default;

int PenelopeSteps::layer_applications(int stream) const {
    return at(stream).n_step_applications + at(stream).n_final;
}

int PenelopeSteps::rounded_up(int n_rows) const {
    return std::min((n_rows + kBucket - 1) / kBucket * kBucket, context_.n_ctx());
}

// Rows [first, first + count) after the prompt of each stream.
std::vector<SeqRange> PenelopeSteps::ranges(const std::vector<int> & streams, int first, int count,
                                            StateSlot to) const {
    std::vector<SeqRange> all;
    int n_seen = 0; // all look as far as the longest, so that its length alone decides about the graph
    for (int stream : streams) {
        n_seen = std::max(n_seen, at(stream).n_prompt + first + count);
    }
    for (int stream : streams) {
        all.push_back(
            { stream, at(stream).n_prompt + first, count, rounded_up(n_seen), count, StateSlot::prompt_end, to });
    }
    return all;
}

// [d * rows, streams] -> [d, rows * n] of the streams in `index`.
Node PenelopeSteps::gather(Graph & g, Node states, Node index, int n_rows) const {
    return reshape_rows(g, ggml_get_rows(g.ctx(), states, index), d_, n_rows * index->ne[0]);
}

void PenelopeSteps::scatter(Graph & g, Node states, Node rows, Node index) const {
    g.expand(ggml_set_rows(g.ctx(), states, reshape_rows(g, rows, states->ne[0], index->ne[0]), index));
}

PenelopeSteps::StartGraph & PenelopeSteps::start_graph(const BatchLayout & p) {
    const bool exact = context_.options().bucket == 1;
    return context_.graph<StartGraph>(p.key("penelope-start", 0), p.streams(), [&]() {
        const Backbone &    model  = context_.model();
        const LatentShape & shape  = method_.shape();
        const int           n      = int(p.prompts.size());
        auto                built  = std::make_unique<StartGraph>(context_, n);
        Graph &             g      = built->graph;
        built->ids                 = g.input("ids", GGML_TYPE_I32, int64_t(p.ids.size()));
        built->streams             = g.input("streams", GGML_TYPE_I64, n);
        built->all                 = std::make_unique<RowInputs>(g, "rows", p.all(), exact);
        const Boundary  start      = boundary(g, model, method_.modules(), shape, embed(g, model.embedding, built->ids),
                                              nullptr, n, built->all->rows(), context_.cache());
        const RowLayout rows       = built->all->subset(g, 0, n);
        Node            prompt_out = prompt_cache(g, model, shape, start.prompt, rows, context_.cache());
        built->n_applications      = g.n_layer_marks();
        if (prompt_out) {
            // A single run sends the prompt through [e:L) together with the interface: side by side, so not one step
            // longer.
            const OutputRows none{};
            run_layers(g, model, shape.end, model.config.n_layer, prompt_out, rows, context_.cache(), &none);
        }
        scatter(g, memory_, start.memory, built->streams);
        scatter(g, readout_, start.readout, built->streams);
        return built;
    });
}

void PenelopeSteps::start(const std::vector<Prompt> & prompts) {
    int                    ahead  = 0;
    const std::vector<int> n_done = prefill_leading_chunks(context_, prompts, ahead);
    const BatchLayout      p = make_batch_layout(context_, prompts, n_done, method_.shape(), context_.options().bucket);
    StartGraph &           built = start_graph(p);
    std::vector<int64_t>   streams;
    for (const Prompt & prompt : prompts) {
        streams.push_back(prompt.stream);
    }
    context_.prepare(built);
    built.graph.set(built.ids, p.ids);
    built.graph.set(built.streams, streams);
    built.all->fill(p.all(), &context_.cache());
    context_.compute(built);
    context_.count_token_rows(p.ids.size());
    for (const Prompt & prompt : prompts) {
        at(prompt.stream) = { int(prompt.tokens.size()), 0, ahead + built.n_applications, 0 };
        // Layers below the interval stand after the interface already. Decoding an answer moves them on, so a second
        // finish() needs this state. Checkpoints inside the prompt stay: the next turn goes back to them.
        context_.cache().forget_after(prompt.stream, at(prompt.stream).n_prompt);
        context_.cache().save_checkpoint(prompt.stream, n_rows_after(prompt.stream), StateSlot::current);
    }
}

PenelopeSteps::RefineGraph & PenelopeSteps::refine_graph(const std::vector<SeqRange> & memory) {
    return context_.graph<RefineGraph>(shape_key("penelope-refine", memory), streams_of(memory), [&]() {
        const Backbone &    model = context_.model();
        const LatentShape & shape = method_.shape();
        const int           n     = int(memory.size());
        auto                built = std::make_unique<RefineGraph>(context_, n);
        Graph &             g     = built->graph;
        built->from               = g.input("from", GGML_TYPE_I32, n);
        built->to                 = g.input("to", GGML_TYPE_I64, n);
        built->t                  = g.input("t", GGML_TYPE_I32, n);
        built->t_rows             = g.input("t.rows", GGML_TYPE_I32, int64_t(n) * shape.n_memory);
        built->rows = std::make_unique<RowInputs>(g, "memory", memory, false, context_.n_batched_streams());

        TimeStep step{};
        step.memory_offset = ggml_get_rows(g.ctx(), offsets_, built->t);       // [d * m, n]
        step.readout_step  = ggml_get_rows(g.ctx(), readout_steps_, built->t); // [d, n]
        step.gain          = ggml_get_rows(g.ctx(), gains_, built->t_rows);    // [d, m * n], likewise the others
        step.shift         = ggml_get_rows(g.ctx(), shifts_, built->t_rows);
        step.update_rate   = ggml_get_rows(g.ctx(), update_rates_, built->t_rows);

        Trajectory trajectory{};
        trajectory.memory  = { gather(g, memory_, built->from, shape.n_memory) };
        trajectory.readout = { gather(g, readout_, built->from, shape.n_readout) };
        refine_once(g, model, method_.modules(), shape, step, built->rows->rows(), context_.cache(), trajectory);
        scatter(g, memory_, trajectory.memory.back(), built->to);
        scatter(g, features_, trajectory.features.back(), built->to);
        scatter(g, readout_, trajectory.readout.back(), built->to);
        return built;
    });
}

void PenelopeSteps::advance(const std::vector<int> & streams) {
    if (streams.empty()) {
        return;
    }
    const LatentShape &         shape  = method_.shape();
    const std::vector<SeqRange> memory = ranges(streams, 0, shape.n_memory, StateSlot::discard);
    RefineGraph &               built  = refine_graph(memory);
    std::vector<int32_t>        t, t_rows;
    for (int stream : streams) {
        t.push_back(at(stream).t);
        t_rows.insert(t_rows.end(), size_t(shape.n_memory), at(stream).t);
    }
    context_.prepare(built);
    built.graph.set(built.from, as<int32_t>(streams));
    built.graph.set(built.to, as<int64_t>(streams));
    built.graph.set(built.t, t);
    built.graph.set(built.t_rows, t_rows);
    built.rows->fill(memory, &context_.cache());
    context_.compute(built);
    for (int stream : streams) {
        at(stream).t++;
        at(stream).n_step_applications += built.graph.n_layer_applications();
    }
}

PenelopeSteps::FinalGraph & PenelopeSteps::final_graph(const std::vector<SeqRange> & rows,
                                                       const std::vector<SeqRange> & last) {
    return context_.graph<FinalGraph>(shape_key("penelope-final", rows), streams_of(rows), [&]() {
        const Backbone &    model = context_.model();
        const LatentShape & shape = method_.shape();
        const int           n     = int(rows.size());
        auto                built = std::make_unique<FinalGraph>(context_, n);
        Graph &             g     = built->graph;
        built->from               = g.input("from", GGML_TYPE_I32, n);
        built->rows               = std::make_unique<RowInputs>(g, "rows", rows, false, context_.n_batched_streams());
        built->last               = std::make_unique<RowInputs>(g, "last", last, false, context_.n_batched_streams());
        built->index              = g.input("last.index", GGML_TYPE_I32, n);
        OutputRows output_rows;
        output_rows.index     = built->index;
        output_rows.positions = built->last->rows().positions;
        output_rows.segments  = built->last->rows().segments;
        output_rows.batched   = built->last->rows().batched;
        Node inter            = join_interface(g, shape, gather(g, memory_, built->from, shape.n_memory),
                                               gather(g, readout_, built->from, shape.n_readout));
        Node out = run_layers(g, model, shape.start, model.config.n_layer, inter, built->rows->rows(), context_.cache(),
                              &output_rows);
        built->logits = logits(g, model, out);
        g.output(built->logits);
        return built;
    });
}

Prefill PenelopeSteps::finish(const std::vector<int> & streams) {
    const int                   n_inter = method_.shape().n_interface();
    const std::vector<SeqRange> rows    = ranges(streams, 0, n_inter, StateSlot::current);
    const std::vector<SeqRange> last    = ranges(streams, n_inter - 1, 1, StateSlot::current);
    FinalGraph &                built   = final_graph(rows, last);
    for (int stream : streams) {
        if (at(stream).n_final > 0) { // an answer may have been decoded since
            context_.cache().restore_checkpoint(stream, n_rows_after(stream));
        }
    }
    context_.prepare(built);
    built.graph.set(built.from, as<int32_t>(context_.options().swap_latents ? swapped(streams) : streams));
    built.rows->fill(rows, &context_.cache());
    built.last->fill(last, &context_.cache());
    built.graph.set(built.index, last_index(0, int(streams.size()), method_.shape()));
    context_.compute(built);

    Prefill prefilled;
    prefilled.logits = get_rows(built.logits);
    for (int stream : streams) {
        at(stream).n_final = built.graph.n_layer_applications();
        prefilled.n_past.push_back(n_rows_after(stream));
        prefilled.layer_applications = std::max(prefilled.layer_applications, layer_applications(stream));
    }
    return prefilled;
}

std::vector<StateTensor> PenelopeSteps::read_state(int stream) const {
    const LatentShape &      shape = method_.shape();
    std::vector<StateTensor> states;
    const auto               put = [&](const char * name, Node all, int64_t n_rows) {
        std::vector<float> values(size_t(all->ne[0]));
        get_bytes(all, size_t(stream) * all->nb[1], values.data(), values.size() * sizeof(float));
        states.push_back({ name, { n_rows, d_ }, std::move(values) });
    };
    put("M", memory_, shape.n_memory);
    put("R", readout_, shape.n_readout);
    if (step(stream) > 0) {
        put("H", features_, shape.n_memory);
        float rate = 0;
        get_bytes(update_rates_, size_t(step(stream) - 1) * update_rates_->nb[1], &rate, sizeof(rate));
        states.push_back({ "alpha", { 1 }, { 2.0f * rate } }); // Equation 8
    }
    return states;
}

} // namespace penelope
