#include "method/penelope_steps.h"

#include "base/error.h"

#include <algorithm>

namespace penelope {

namespace {

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

// Inputs that a graph does not have are null.
struct PenelopeSteps::Built : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids  = nullptr;                // of the prompts
    Node                       from = nullptr, to = nullptr;  // the streams whose latent state is read, and written
    Node                       t = nullptr, t_rows = nullptr; // row of the time tables, per stream and per memory row
    std::unique_ptr<RowInputs> all;                           // prompts, then interfaces
    RowLayout                  prompt_rows;                   // prompts alone
    std::unique_ptr<RowInputs> memory, interfaces, last;      // last: the last readout rows
    Node                       last_index = nullptr;          // of the last readout rows among the output rows
    Trajectory                 trajectory{};
    Node                       logits   = nullptr;
    int                        n_beside = 0; // layer applications that run beside others: they make no question longer
};

PenelopeSteps::PenelopeSteps(const PenelopeMethod & method, Context & context)
    : LatentSteps(method, context), method_(method), d_(context.model().config.n_embd),
      store_(context.latent_device(), false) {
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

// [d * rows, streams] -> [d, rows * n] of the streams in `index`.
Node PenelopeSteps::gather(Graph & g, Node states, Node index, int n_rows) const {
    return reshape_rows(g, ggml_get_rows(g.ctx(), states, index), d_, n_rows * index->ne[0]);
}

void PenelopeSteps::scatter(Graph & g, Node states, Node rows, Node index) const {
    g.expand(ggml_set_rows(g.ctx(), states, reshape_rows(g, rows, states->ne[0], index->ne[0]), index));
}

// Interface and memory rows over a cache that holds the prompts.
BatchLayout PenelopeSteps::layout_after_prompt(const std::vector<int> & streams) const {
    const auto ranges = [&](int first, int count, StateSlot to) {
        std::vector<SeqRange> all = rounded_ranges(
            streams, [&](int stream) { return at(stream).n_prompt + first; }, count);
        for (SeqRange & range : all) {
            range.from = StateSlot::prompt_end;
            range.to   = to;
        }
        return all;
    };
    const LatentShape & shape = method_.shape();
    BatchLayout         rows;
    rows.memory     = ranges(0, shape.n_memory, StateSlot::discard);
    rows.interfaces = ranges(0, shape.n_interface(), StateSlot::current);
    rows.last       = ranges(shape.n_interface() - 1, 1, StateSlot::current);
    return rows;
}

// Boundary and prompt cache: M_0 and R_0. Returns the prompt rows after layer e - 1; null when e = L.
Node PenelopeSteps::build_start(Built & built, const BatchLayout & rows) {
    const Backbone & model = context_.model();
    const int        n     = int(rows.prompts.size());
    Graph &          g     = built.graph;
    built.ids              = g.input("ids", GGML_TYPE_I32, int64_t(rows.ids.size()));
    built.all =
        std::make_unique<RowInputs>(g, "rows", context_.model().config, rows.all(), context_.options().bucket == 1);
    const Boundary start     = boundary(g, model, method_.modules(), method_.shape(), embed_tokens(g, model, built.ids),
                                        nullptr, n, built.all->rows(), context_.cache());
    built.trajectory.prompt  = start.prompt;
    built.trajectory.memory  = { start.memory };
    built.trajectory.readout = { start.readout };
    built.prompt_rows        = built.all->subset(g, 0, n);
    return prompt_cache(g, model, method_.shape(), start.prompt, built.prompt_rows, context_.cache());
}

// The values of each stream's own step.
TimeStep PenelopeSteps::gather_time_step(Built & built, int n) {
    Graph & g    = built.graph;
    built.t      = g.input("t", GGML_TYPE_I32, n);
    built.t_rows = g.input("t.rows", GGML_TYPE_I32, int64_t(n) * method_.shape().n_memory);
    TimeStep step{};
    step.memory_offset = ggml_get_rows(g.ctx(), offsets_, built.t);       // [d * m, n]
    step.readout_step  = ggml_get_rows(g.ctx(), readout_steps_, built.t); // [d, n]
    step.gain          = ggml_get_rows(g.ctx(), gains_, built.t_rows);    // [d, m * n], likewise the others
    step.shift         = ggml_get_rows(g.ctx(), shifts_, built.t_rows);
    step.update_rate   = ggml_get_rows(g.ctx(), update_rates_, built.t_rows);
    return step;
}

// The interface rows through [s:L), and the logits of the last readout rows. prompt: as left by build_start(), else
// null. all_rows: the output has every interface row.
void PenelopeSteps::build_final(Built & built, const BatchLayout & rows, Node prompt, bool all_rows) {
    const LatentShape & shape     = method_.shape();
    const int           n         = int(rows.memory.size());
    const bool          exact     = built.all && context_.options().bucket == 1;
    const int           n_batched = built.all ? 0 : context_.n_batched_streams();
    Graph &             g         = built.graph;
    built.interfaces =
        std::make_unique<RowInputs>(g, "interface", context_.model().config, rows.interfaces, exact, n_batched);
    OutputRows output;
    if (all_rows) {
        output.first     = prompt ? rows.n_prompt : 0;
        output.count     = n * shape.n_interface();
        output.positions = built.interfaces->rows().positions;
        output.segments  = built.interfaces->rows().segments;
    } else {
        built.last       = std::make_unique<RowInputs>(g, "last", context_.model().config, rows.last, exact, n_batched);
        built.last_index = g.input("last.index", GGML_TYPE_I32, n);
        output.index     = built.last_index;
        output.positions = built.last->rows().positions;
        output.segments  = built.last->rows().segments;
        output.batched   = built.last->rows().batched;
    }
    Trajectory & t = built.trajectory;
    t.output =
        final_pass(g, context_.model(), shape, join_interface(g, shape, t.memory.back(), t.readout.back()), prompt,
                   built.interfaces->rows(), built.all ? built.all->rows() : RowLayout{}, context_.cache(), output);
    built.logits = logits(g, context_.model(), all_rows ? slice_rows(g, t.output, t.output->ne[1] - 1, 1) : t.output);
    g.output(built.logits);
}

// rows: without prompts the streams go on from their latent state on the device. keep_states: the host can read the
// whole trajectory.
PenelopeSteps::Built & PenelopeSteps::graph(const BatchLayout & rows, int n_steps, bool finish, bool keep_states) {
    const bool        has_prompts = !rows.prompts.empty();
    const std::string kind =
        "penelope" + std::to_string(n_steps) + (finish ? "-final" : "") + (keep_states ? "-states" : "");
    const std::string key = shape_key(has_prompts ? kind + "-start" : kind, has_prompts ? rows.prompts
                                                                            : finish    ? rows.interfaces
                                                                                        : rows.memory);
    return context_.graph<Built>(key, streams_of(rows.memory), [&]() {
        const Backbone &    model  = context_.model();
        const LatentShape & shape  = method_.shape();
        const int           n      = int(rows.memory.size());
        auto                built  = std::make_unique<Built>(context_, n);
        Graph &             g      = built->graph;
        Trajectory &        t      = built->trajectory;
        Node                prompt = nullptr;
        if (has_prompts) {
            prompt = build_start(*built, rows);
        } else {
            built->from = g.input("from", GGML_TYPE_I32, n);
            t.memory    = { gather(g, memory_, built->from, shape.n_memory) };
            t.readout   = { gather(g, readout_, built->from, shape.n_readout) };
        }
        if (n_steps > 0) {
            built->memory = std::make_unique<RowInputs>(g, "memory", context_.model().config, rows.memory,
                                                        has_prompts && context_.options().bucket == 1,
                                                        has_prompts ? 0 : context_.n_batched_streams());
        }
        for (int i = 0; i < n_steps; i++) {
            const TimeStep step = has_prompts ? method_.time_steps()[size_t(i)] : gather_time_step(*built, n);
            refine_once(g, model, method_.modules(), shape, step, built->memory->rows(), context_.cache(), t);
            g.add_abort_point(t.readout.back());
        }
        if (finish) {
            build_final(*built, rows, prompt, keep_states);
        } else {
            if (prompt) {
                // In one graph the prompt goes through [e:L) together with the interface. So do not count these layers.
                const int        n_marks = g.n_layer_marks();
                const OutputRows none{};
                run_layers(g, model, shape.end, model.config.n_layer, prompt, built->prompt_rows, context_.cache(),
                           &none);
                built->n_beside = g.n_layer_marks() - n_marks;
            }
            built->to = g.input("to", GGML_TYPE_I64, n);
            scatter(g, memory_, t.memory.back(), built->to);
            scatter(g, readout_, t.readout.back(), built->to);
            if (!t.features.empty()) {
                scatter(g, features_, t.features.back(), built->to);
            }
        }
        if (keep_states) {
            // Views keep their source alive only as long as the source itself is kept.
            for (Node * node : { &t.prompt, &t.memory[0], &t.readout[0] }) {
                *node = ggml_cont(g.ctx(), *node);
            }
            for (const std::vector<Node> * list : { &t.memory, &t.readout, &t.features, &t.modulated, &t.proposal }) {
                std::for_each(list->begin(), list->end(), [&](Node node) { g.output(node); });
            }
            g.output(t.prompt);
            g.output(t.output);
        }
        return built;
    });
}

// Sets the inputs the graph has and computes it.
void PenelopeSteps::compute(Built & built, const BatchLayout & rows) {
    Graph &                g       = built.graph;
    const SequenceCache &  cache   = context_.cache();
    const std::vector<int> streams = streams_of(rows.memory);
    context_.prepare(built);
    if (built.ids) {
        g.set(built.ids, rows.ids);
        built.all->fill(rows.all(), &cache);
    }
    if (built.from) {
        // Only the final pass may read the latent state of another question.
        g.set(built.from, as<int32_t>(built.logits && context_.options().swap_latents ? swapped(streams) : streams));
    }
    if (built.to) {
        g.set(built.to, as<int64_t>(streams));
    }
    if (built.t) {
        std::vector<int32_t> t, t_rows;
        for (int stream : streams) {
            t.push_back(step(stream));
            t_rows.insert(t_rows.end(), size_t(method_.shape().n_memory), step(stream));
        }
        g.set(built.t, t);
        g.set(built.t_rows, t_rows);
    }
    if (built.memory) {
        built.memory->fill(rows.memory, &cache);
    }
    if (built.interfaces) {
        built.interfaces->fill(rows.interfaces, &cache);
    }
    if (built.last) {
        const bool has_prompt_rows = built.all && method_.shape().end < context_.model().config.n_layer;
        built.last->fill(rows.last, &cache);
        g.set(built.last_index, last_index(has_prompt_rows ? rows.n_prompt : 0, int(streams.size()), method_.shape()));
    }
    context_.compute(built);
    context_.count_token_rows(rows.ids.size());
}

LatentSteps::PassResult PenelopeSteps::run(const Pass & pass) {
    PassResult  result;
    BatchLayout rows;
    if (pass.prompts.empty()) {
        rows = layout_after_prompt(pass.streams);
    } else {
        const std::vector<int> n_done = prefill_leading_chunks(context_, pass.prompts, result.layer_applications);
        rows = make_batch_layout(context_, pass.prompts, n_done, method_.shape(), context_.options().bucket);
    }
    Built & built = graph(rows, pass.n_steps, pass.finish, false);
    for (int stream : pass.streams) {
        if (pass.finish && at(stream).n_final > 0) { // an answer may have been decoded since
            context_.cache().restore_checkpoint(stream, n_rows_after(stream));
        }
    }
    compute(built, rows);
    for (int stream : pass.streams) {
        if (!pass.prompts.empty() && !pass.finish) {
            // Layers below the interval stand after the interface already. Decoding an answer moves them on, so a
            // second finish() needs this state. Checkpoints inside the prompt stay: the next turn goes back to them.
            context_.cache().forget_after(stream, at(stream).n_prompt);
            context_.cache().save_checkpoint(stream, n_rows_after(stream), StateSlot::current);
        }
    }
    result.layer_applications += built.graph.n_layer_applications() - built.n_beside;
    if (pass.finish) {
        result.logits = get_rows(built.logits);
    }
    return result;
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

std::vector<StateTensor> PenelopeSteps::states(const Prompt & prompt, int n_steps) {
    int                    applications = 0;
    const std::vector<int> n_done       = prefill_leading_chunks(context_, { prompt }, applications);
    const BatchLayout      rows         = make_batch_layout(context_, { prompt }, n_done, method_.shape(), 1);
    Built &                built        = graph(rows, n_steps, true, true);
    compute(built, rows);

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
        const float update_rate = get_node(method_.time_steps()[i - 1].update_rate)[0];
        states.push_back({ "alpha_" + n, { 1 }, { 2.0f * update_rate } }); // Equation 8
    }
    put("interface_out", t.output);
    states.push_back({ "first_logits", { built.logits->ne[0] }, get_node(built.logits) });
    return states;
}

} // namespace penelope
