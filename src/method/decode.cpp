#include "method/decode.h"

#include <algorithm>

namespace penelope {

namespace {

// n_kv is rounded up to a multiple of this, so that one graph serves many tokens; the mask hides the rest.
constexpr int kDecodeBucket = 64;

// From this many queries on, ggml's CPU flash attention uses a tiled kernel, which rounds differently.
constexpr int kAttentionTile = 64;

struct TokenGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr;
    std::unique_ptr<RowInputs> rows;
    std::unique_ptr<RowInputs> last; // the last row of each range
    Node                       last_index = nullptr;
    Node                       logits     = nullptr;
};

std::vector<SeqRange> last_rows(const std::vector<SeqRange> & ranges) {
    std::vector<SeqRange> last;
    for (const SeqRange & s : ranges) {
        last.push_back({ s.stream, s.row + s.count - 1, 1, s.n_kv, 1 });
    }
    return last;
}

// Runs all layers over these ranges; logits of each range's last row if requested.
TokenGraph & token_graph(Context & context, const std::vector<SeqRange> & ranges, bool need_logits) {
    const std::string key = shape_key(need_logits ? "tokens" : "chunk", ranges);
    return context.graph<TokenGraph>(key, streams_of(ranges), [&]() {
        const Backbone & model = context.model();
        const int        n     = int(ranges.size());
        auto             built = std::make_unique<TokenGraph>(context, n);
        const bool       all_single =
            std::all_of(ranges.begin(), ranges.end(), [](const SeqRange & s) { return s.count == 1; });
        Graph & g    = built->graph;
        built->rows  = std::make_unique<RowInputs>(g, "rows", model.config, ranges, false,
                                                  all_single ? context.n_batched_streams() : 0);
        built->ids   = g.input("ids", GGML_TYPE_I32, built->rows->n_rows());
        Node       x = embed_tokens(g, model, built->ids);
        OutputRows output_rows;
        if (need_logits) {
            if (all_single) {
                Node out      = run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context.cache());
                built->logits = logits(g, model, out);
            } else {
                built->last           = std::make_unique<RowInputs>(g, "last", model.config, last_rows(ranges), false,
                                                          context.n_batched_streams());
                built->last_index     = g.input("last.index", GGML_TYPE_I32, int64_t(ranges.size()));
                output_rows.index     = built->last_index;
                output_rows.positions = built->last->rows().positions;
                output_rows.segments  = built->last->rows().segments;
                output_rows.batched   = built->last->rows().batched;
                Node out      = run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context.cache(),
                                           &output_rows);
                built->logits = logits(g, model, out);
            }
            g.output(built->logits);
        } else {
            run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context.cache(), &output_rows);
        }
        return built;
    });
}

std::vector<std::vector<float>> run_tokens(Context & context, const std::vector<SeqRange> & ranges,
                                           const std::vector<int32_t> & ids, bool need_logits, int & applications) {
    TokenGraph & built = token_graph(context, ranges, need_logits);
    context.prepare(built);
    built.graph.set(built.ids, ids);
    built.rows->fill(ranges, &context.cache());
    if (built.last) {
        built.last->fill(last_rows(ranges), &context.cache());
        std::vector<int32_t> index;
        int32_t              end = 0;
        for (const SeqRange & s : ranges) {
            end += s.count;
            index.push_back(end - 1);
        }
        built.graph.set(built.last_index, index);
    }
    context.compute(built);
    context.count_token_rows(ids.size());
    applications += built.graph.n_layer_applications();
    return need_logits ? get_rows(built.logits) : std::vector<std::vector<float>>{};
}

} // namespace

int chunk_end(Context & context, const Prompt & prompt, int n_stable_prefix) {
    const int n_batch = context.options().n_batch;
    const int end     = std::min((prompt.n_cached / n_batch + 1) * n_batch, int(prompt.tokens.size()));
    if (!context.cache().is_recurrent() || n_stable_prefix <= prompt.n_cached || n_stable_prefix >= end) {
        return end;
    }
    const int split =
        context.options().batch_invariant ? bitexact_split(prompt.n_cached, n_stable_prefix, end) : n_stable_prefix;
    return split > prompt.n_cached ? split : end;
}

SeqRange prompt_range(Context & context, const Prompt & prompt, int end) {
    const int n_batch = context.options().n_batch;
    SeqRange  part{ prompt.stream, prompt.n_cached, end - prompt.n_cached };
    // Recurrent layers go on from a checkpoint in the middle of a chunk. A batch-invariant context always takes the
    // tiled kernel for them, so that its rows have the same bits in a longer prompt.
    const bool is_always_tiled = context.options().batch_invariant && context.cache().is_recurrent();
    if (context.backend().is_cpu_only() &&
        (is_always_tiled || end - prompt.n_cached / n_batch * n_batch >= kAttentionTile)) {
        part.n_queries = kAttentionTile;
    }
    return part;
}

int prefill_chunk(Context & context, const Prompt & prompt, int & applications) {
    const int    end = chunk_end(context, prompt);
    const Tokens chunk(prompt.tokens.begin() + prompt.n_cached, prompt.tokens.begin() + end);
    run_tokens(context, { prompt_range(context, prompt, end) }, chunk, false, applications);
    return end;
}

int prefill_chunks(Context & context, const Prompt & prompt, int & applications) {
    Prompt left = prompt;
    while (chunk_end(context, left) < int(prompt.tokens.size())) {
        left.n_cached = prefill_chunk(context, left, applications);
    }
    return left.n_cached;
}

int prefill_stable_prefix(Context & context, Prompt & prompt, int n_stable_prefix) {
    if (!context.cache().is_recurrent() || n_stable_prefix <= prompt.n_cached ||
        n_stable_prefix >= int(prompt.tokens.size())) {
        return 0;
    }
    int          applications = 0;
    const Prompt part{ Tokens(prompt.tokens.begin(), prompt.tokens.begin() + n_stable_prefix), prompt.stream,
                       prompt.n_cached };
    prefill(context, { part }, applications);
    context.cache().save_checkpoint(prompt.stream, n_stable_prefix, StateSlot::current);
    prompt.n_cached = n_stable_prefix;
    return applications;
}

std::vector<std::vector<float>> prefill(Context & context, const std::vector<Prompt> & prompts, int & applications) {
    std::vector<SeqRange> ranges;
    std::vector<int32_t>  ids;
    for (const Prompt & prompt : prompts) {
        const int done = prefill_chunks(context, prompt, applications);
        ranges.push_back(prompt_range(context, { prompt.tokens, prompt.stream, done }, int(prompt.tokens.size())));
        ids.insert(ids.end(), prompt.tokens.begin() + done, prompt.tokens.end());
    }
    return run_tokens(context, ranges, ids, true, applications);
}

std::vector<std::vector<float>> decode(Context & context, const std::vector<NextToken> & tokens) {
    std::vector<SeqRange> ranges;
    std::vector<int32_t>  ids;
    int                   last = 0;
    for (const NextToken & next : tokens) {
        last = std::max(last, next.row);
    }
    // All sequences use the n_kv of the longest, so a batch reuses its graph until a sequence joins or leaves.
    const int n_kv = std::min((last / kDecodeBucket + 1) * kDecodeBucket, context.n_ctx());
    for (const NextToken & next : tokens) {
        ranges.push_back({ next.stream, next.row, 1, n_kv, 1 });
        ids.push_back(next.token);
    }
    int applications = 0;
    return run_tokens(context, ranges, ids, true, applications);
}

} // namespace penelope
