#include "method/thought_steps.h"

#include "method/batch_layout.h"
#include "method/decode.h"

#include <algorithm>

namespace penelope {

namespace {

// n_kv is rounded up to a multiple of this, so that one graph serves many steps; the mask hides the rest.
constexpr int kBucket = 64;

template <typename T> std::vector<T> as(const std::vector<int> & values) {
    return std::vector<T>(values.begin(), values.end());
}

} // namespace

struct ThoughtSteps::StartGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr, to = nullptr;
    std::unique_ptr<RowInputs> first; // prompts, then a start row each
};

struct ThoughtSteps::ThoughtGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       from = nullptr, to = nullptr; // the streams, to read and to write
    std::unique_ptr<RowInputs> rows;
};

struct ThoughtSteps::EndGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr, index = nullptr, logits = nullptr; // ids: null without a prefix
    std::unique_ptr<RowInputs> rows, last;
};

ThoughtSteps::ThoughtSteps(const ThoughtMethod & method, Context & context)
    : method_(method), context_(context), store_(context.latent_device(), false),
      streams_(size_t(context.options().n_streams)) {
    next_ = store_.add_empty("steps.thought", GGML_TYPE_F32,
                             { context.model().config.n_embd, int64_t(context.options().n_streams) });
    store_.load();
}

// Rows [first, first + count) after the thoughts of each stream so far.
std::vector<SeqRange> ThoughtSteps::after_thoughts(const std::vector<int> & streams, int first, int count) const {
    std::vector<SeqRange> all;
    int n_seen = 0; // all look as far as the longest, so that its length alone decides about the graph
    for (int stream : streams) {
        const int row = at(stream).n_prompt + 1 + at(stream).t + first;
        n_seen        = std::max(n_seen, row + count);
        all.push_back({ stream, row, count, 0, count, StateSlot::current, StateSlot::current });
    }
    for (SeqRange & s : all) {
        s.n_kv = std::min((n_seen + kBucket - 1) / kBucket * kBucket, context_.n_ctx());
    }
    return all;
}

// state: residual stream after the last layer, a row for each stream.
void ThoughtSteps::store_next(Graph & g, Node state, Node streams) const {
    g.expand(ggml_set_rows(g.ctx(), next_, next_thought(g, context_.model(), method_.modules(), state), streams));
}

ThoughtSteps::StartGraph & ThoughtSteps::start_graph(const std::vector<SeqRange> & first, int n_ids) {
    const int                   n = int(first.size()) / 2;
    const std::vector<SeqRange> starts(first.begin() + n, first.end());
    return context_.graph<StartGraph>(shape_key(method_.name() + "-start", first), streams_of(starts), [&]() {
        const Backbone & model     = context_.model();
        auto             built     = std::make_unique<StartGraph>(context_, n);
        Graph &          g         = built->graph;
        built->ids                 = g.input("ids", GGML_TYPE_I32, n_ids);
        built->to                  = g.input("to", GGML_TYPE_I64, n);
        built->first               = std::make_unique<RowInputs>(g, "first", first, true);
        const RowLayout start_rows = built->first->subset(g, n, n);
        OutputRows      output_rows;
        output_rows.first     = n_ids;
        output_rows.count     = n;
        output_rows.positions = start_rows.positions;
        output_rows.segments  = start_rows.segments;
        Node start            = repeat_rows(g, slice_rows(g, method_.modules().token_rows, 0, 1), n);
        Node x                = concat_rows(g, { embed(g, model.embedding, built->ids), start });
        store_next(
            g, run_layers(g, model, 0, model.config.n_layer, x, built->first->rows(), context_.cache(), &output_rows),
            built->to);
        return built;
    });
}

void ThoughtSteps::start(const std::vector<Prompt> & prompts) {
    int                    ahead  = 0;
    const std::vector<int> n_done = prefill_leading_chunks(context_, prompts, ahead);
    std::vector<SeqRange>  first, starts;
    std::vector<int32_t>   ids;
    std::vector<int>       streams;
    for (size_t i = 0; i < prompts.size(); i++) {
        const Tokens & tokens = prompts[i].tokens;
        const int      n_all  = int(tokens.size());
        first.push_back(prompt_range(context_, { tokens, prompts[i].stream, n_done[i] }, n_all));
        starts.push_back({ prompts[i].stream, n_all, 1 });
        first.back().to = starts.back().from =
            StateSlot::prompt_end; // the end of the prompt, for a later prompt to go on from
        ids.insert(ids.end(), tokens.begin() + n_done[i], tokens.end());
        streams.push_back(prompts[i].stream);
    }
    first.insert(first.end(), starts.begin(), starts.end());
    StartGraph & built = start_graph(first, int(ids.size()));
    context_.prepare(built);
    built.graph.set(built.ids, ids);
    built.graph.set(built.to, as<int64_t>(streams));
    built.first->fill(first, &context_.cache());
    context_.compute(built);
    context_.count_token_rows(ids.size());
    for (size_t i = 0; i < prompts.size(); i++) {
        at(streams[i]) = { int(prompts[i].tokens.size()), 0, ahead + built.graph.n_layer_applications(), 0 };
    }
}

ThoughtSteps::ThoughtGraph & ThoughtSteps::thought_graph(const std::vector<SeqRange> & rows) {
    return context_.graph<ThoughtGraph>(shape_key(method_.name() + "-thought", rows), streams_of(rows), [&]() {
        const Backbone & model = context_.model();
        const int        n     = int(rows.size());
        auto             built = std::make_unique<ThoughtGraph>(context_, n);
        Graph &          g     = built->graph;
        built->from            = g.input("from", GGML_TYPE_I32, n);
        built->to              = g.input("to", GGML_TYPE_I64, n);
        built->rows            = std::make_unique<RowInputs>(g, "rows", rows, false, context_.n_batched_streams());
        Node x                 = ggml_get_rows(g.ctx(), next_, built->from);
        store_next(g, run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context_.cache()),
                   built->to);
        return built;
    });
}

void ThoughtSteps::advance(const std::vector<int> & streams) {
    if (streams.empty()) {
        return;
    }
    const std::vector<SeqRange> rows  = after_thoughts(streams, 0, 1);
    ThoughtGraph &              built = thought_graph(rows);
    for (int stream : streams) {
        if (at(stream).n_final > 0) {
            context_.cache().restore_checkpoint(stream, at(stream).n_prompt + 1 + at(stream).t);
        }
    }
    context_.prepare(built);
    built.graph.set(built.from, as<int32_t>(streams));
    built.graph.set(built.to, as<int64_t>(streams));
    built.rows->fill(rows, &context_.cache());
    context_.compute(built);
    for (int stream : streams) {
        at(stream).t++;
        at(stream).n_final = 0;
        at(stream).n_step_applications += built.graph.n_layer_applications();
    }
}

ThoughtSteps::EndGraph & ThoughtSteps::end_graph(const std::vector<SeqRange> & rows,
                                                 const std::vector<SeqRange> & last) {
    return context_.graph<EndGraph>(shape_key(method_.name() + "-end", rows), streams_of(rows), [&]() {
        const Backbone & model    = context_.model();
        const int        n        = int(rows.size());
        const int        n_prefix = rows.front().count - 1;
        auto             built    = std::make_unique<EndGraph>(context_, n);
        Graph &          g        = built->graph;
        built->rows               = std::make_unique<RowInputs>(g, "rows", rows, false, context_.n_batched_streams());
        Node end                  = slice_rows(g, method_.modules().token_rows, 1, 1);
        if (n_prefix == 0) {
            Node out      = run_layers(g, model, 0, model.config.n_layer, repeat_rows(g, end, n), built->rows->rows(),
                                       context_.cache());
            built->logits = logits(g, model, out);
        } else {
            built->ids              = g.input("ids", GGML_TYPE_I32, int64_t(n) * n_prefix);
            built->last             = std::make_unique<RowInputs>(g, "last", last, false, context_.n_batched_streams());
            built->index            = g.input("last.index", GGML_TYPE_I32, n);
            Node              words = embed(g, model.embedding, built->ids);
            std::vector<Node> parts;
            for (int i = 0; i < n; i++) {
                parts.push_back(end);
                parts.push_back(slice_rows(g, words, int64_t(i) * n_prefix, n_prefix));
            }
            OutputRows output_rows;
            output_rows.index     = built->index;
            output_rows.positions = built->last->rows().positions;
            output_rows.segments  = built->last->rows().segments;
            output_rows.batched   = built->last->rows().batched;
            Node out      = run_layers(g, model, 0, model.config.n_layer, concat_rows(g, parts), built->rows->rows(),
                                       context_.cache(), &output_rows);
            built->logits = logits(g, model, out);
        }
        g.output(built->logits);
        return built;
    });
}

Prefill ThoughtSteps::finish(const std::vector<int> & streams) {
    const int                   n_end = 1 + int(method_.prefix().size());
    const std::vector<SeqRange> rows  = after_thoughts(streams, 0, n_end);
    const std::vector<SeqRange> last  = after_thoughts(streams, n_end - 1, 1);
    EndGraph &                  built = end_graph(rows, last);
    for (int stream : streams) {
        // For a step after the answer: end row and answer are not part of it.
        context_.cache().save_checkpoint(stream, at(stream).n_prompt + 1 + at(stream).t, StateSlot::current);
    }
    context_.prepare(built);
    built.rows->fill(rows, &context_.cache());
    if (built.ids) {
        std::vector<int32_t> ids, index;
        for (size_t i = 1; i <= streams.size(); i++) {
            ids.insert(ids.end(), method_.prefix().begin(), method_.prefix().end());
            index.push_back(int32_t(i) * n_end - 1);
        }
        built.graph.set(built.ids, ids);
        built.graph.set(built.index, index);
        built.last->fill(last, &context_.cache());
    }
    context_.compute(built);

    Prefill prefilled;
    prefilled.logits = get_rows(built.logits);
    for (int stream : streams) {
        at(stream).n_final = built.graph.n_layer_applications();
        prefilled.n_past.push_back(at(stream).n_prompt + method_.n_extra_rows(at(stream).t));
        prefilled.layer_applications = std::max(prefilled.layer_applications, layer_applications(stream));
    }
    return prefilled;
}

std::vector<StateTensor> ThoughtSteps::read_state(int stream) const {
    std::vector<float> values(size_t(next_->ne[0]));
    get_bytes(next_, size_t(stream) * next_->nb[1], values.data(), values.size() * sizeof(float));
    return { { "R", { 1, next_->ne[0] }, std::move(values) } };
}

} // namespace penelope
