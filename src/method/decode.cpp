#include "method/decode.h"

#include <algorithm>

namespace penelope {

namespace {

// Places looked at by decoding are rounded up, so that a graph serves many tokens; the mask hides the rest.
constexpr int kDecodeBucket = 64;

// From so many queries on ggml's CPU attends tile by tile, and rounds differently.
constexpr int kAttentionTile = 64;

struct TokenGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr;
    std::unique_ptr<RowInputs> rows;
    std::unique_ptr<RowInputs> last; // the last row of each stretch
    Node                       last_index = nullptr;
    Node                       logits     = nullptr;
};

std::vector<Stretch> last_rows(const std::vector<Stretch> & stretches) {
    std::vector<Stretch> last;
    for (const Stretch & s : stretches) {
        last.push_back({ s.stream, s.row + s.count - 1, 1, s.n_kv, 1 });
    }
    return last;
}

// All layers over these stretches; logits of the last row of each when wanted.
TokenGraph & token_graph(Context & context, const std::vector<Stretch> & stretches, bool wants_logits) {
    const std::string key = shape_key(wants_logits ? "tokens" : "chunk", stretches);
    return context.graph<TokenGraph>(key, streams_of(stretches), [&]() {
        const Backbone & model = context.model();
        const int        n     = int(stretches.size());
        auto             built = std::make_unique<TokenGraph>(context, n);
        const bool       all_single =
            std::all_of(stretches.begin(), stretches.end(), [](const Stretch & s) { return s.count == 1; });
        Graph & g   = built->graph;
        built->rows = std::make_unique<RowInputs>(g, "rows", stretches, false, all_single ? context.n_abreast() : 0);
        built->ids  = g.input("ids", GGML_TYPE_I32, built->rows->n_rows());
        Node    x   = embed(g, model.embedding, built->ids);
        Queries kept;
        if (wants_logits) {
            if (all_single) {
                Node out      = run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context.cache());
                built->logits = logits(g, model, out);
            } else {
                built->last = std::make_unique<RowInputs>(g, "last", last_rows(stretches), false, context.n_abreast());
                built->last_index = g.input("last.index", GGML_TYPE_I32, int64_t(stretches.size()));
                kept.index        = built->last_index;
                kept.positions    = built->last->rows().positions;
                kept.segments     = built->last->rows().segments;
                kept.abreast      = built->last->rows().abreast;
                Node out =
                    run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context.cache(), &kept);
                built->logits = logits(g, model, out);
            }
            g.output(built->logits);
        } else {
            run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context.cache(), &kept);
        }
        return built;
    });
}

std::vector<std::vector<float>> run_tokens(Context & context, const std::vector<Stretch> & stretches,
                                           const std::vector<int32_t> & ids, bool wants_logits, int & applications) {
    TokenGraph & built = token_graph(context, stretches, wants_logits);
    context.prepare(built);
    built.graph.set(built.ids, ids);
    built.rows->fill(stretches, &context.cache());
    if (built.last) {
        built.last->fill(last_rows(stretches), &context.cache());
        std::vector<int32_t> index;
        int32_t              end = 0;
        for (const Stretch & s : stretches) {
            end += s.count;
            index.push_back(end - 1);
        }
        built.graph.set(built.last_index, index);
    }
    context.compute(built);
    context.count_token_rows(ids.size());
    applications += built.graph.n_layer_applications();
    return wants_logits ? get_rows(built.logits) : std::vector<std::vector<float>>{};
}

} // namespace

int chunk_end(const Context & context, const Prompt & prompt) {
    const int n_batch = context.options().n_batch;
    return std::min((prompt.n_kept / n_batch + 1) * n_batch, int(prompt.tokens.size()));
}

Stretch prompt_stretch(const Context & context, const Prompt & prompt, int end) {
    const int n_batch = context.options().n_batch;
    Stretch   part    = stretch(prompt.stream, prompt.n_kept, end - prompt.n_kept);
    if (context.backend().is_cpu_alone() && end - prompt.n_kept / n_batch * n_batch >= kAttentionTile) {
        part.n_queries = kAttentionTile;
    }
    return part;
}

int prefill_chunk(Context & context, const Prompt & prompt, int & applications) {
    const int    end = chunk_end(context, prompt);
    const Tokens chunk(prompt.tokens.begin() + prompt.n_kept, prompt.tokens.begin() + end);
    run_tokens(context, { prompt_stretch(context, prompt, end) }, chunk, false, applications);
    return end;
}

int prefill_chunks(Context & context, const Prompt & prompt, int & applications) {
    Prompt left = prompt;
    while (chunk_end(context, left) < int(prompt.tokens.size())) {
        left.n_kept = prefill_chunk(context, left, applications);
    }
    return left.n_kept;
}

int read_lasting(Context & context, Prompt & prompt, int n_lasting) {
    if (!context.cache().is_recurrent() || n_lasting <= prompt.n_kept || n_lasting >= int(prompt.tokens.size())) {
        return 0;
    }
    int          applications = 0;
    const Prompt part{ Tokens(prompt.tokens.begin(), prompt.tokens.begin() + n_lasting), prompt.stream, prompt.n_kept };
    prefill(context, { part }, applications);
    context.cache().keep(prompt.stream, n_lasting, Hold::tip);
    prompt.n_kept = n_lasting;
    return applications;
}

std::vector<std::vector<float>> prefill(Context & context, const std::vector<Prompt> & prompts, int & applications) {
    std::vector<Stretch> stretches;
    std::vector<int32_t> ids;
    for (const Prompt & prompt : prompts) {
        const int done = prefill_chunks(context, prompt, applications);
        stretches.push_back(prompt_stretch(context, { prompt.tokens, prompt.stream, done }, int(prompt.tokens.size())));
        ids.insert(ids.end(), prompt.tokens.begin() + done, prompt.tokens.end());
    }
    return run_tokens(context, stretches, ids, true, applications);
}

std::vector<std::vector<float>> decode(Context & context, const std::vector<NextToken> & tokens) {
    std::vector<Stretch> stretches;
    std::vector<int32_t> ids;
    int                  last = 0;
    for (const NextToken & next : tokens) {
        last = std::max(last, next.row);
    }
    // All look as far as the longest: sequences that grow side by side then share a graph until one joins or leaves.
    const int n_kv = std::min((last / kDecodeBucket + 1) * kDecodeBucket, context.n_rows());
    for (const NextToken & next : tokens) {
        stretches.push_back({ next.stream, next.row, 1, n_kv, 1 });
        ids.push_back(next.token);
    }
    int applications = 0;
    return run_tokens(context, stretches, ids, true, applications);
}

} // namespace penelope
