#include "method/decode.h"

#include <algorithm>

namespace penelope {

namespace {

// Places looked at by decoding are rounded up, so that a graph serves many tokens; the mask hides the rest.
constexpr int kDecodeBucket = 64;

struct TokenGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                       ids = nullptr;
    std::unique_ptr<RowInputs> rows;
    std::unique_ptr<RowInputs> last; // the last row of each stretch
    Node                       last_index = nullptr;
    Node                       logits     = nullptr;
};

std::string key_of(const char * kind, const std::vector<Stretch> & stretches) {
    std::string key = kind;
    for (const Stretch & s : stretches) {
        key += ":" + std::to_string(s.stream) + "," + std::to_string(s.count) + "," + std::to_string(s.n_kv) +
               (s.row > 0 ? "" : "!"); // at its beginning a sequence has no state to go on from
    }
    return key;
}

std::vector<Stretch> last_rows(const std::vector<Stretch> & stretches) {
    std::vector<Stretch> last;
    for (const Stretch & s : stretches) {
        last.push_back({ s.stream, s.row + s.count - 1, 1, s.n_kv, 1 });
    }
    return last;
}

// All layers over these stretches; logits of the last row of each when wanted.
TokenGraph & token_graph(Context & context, const std::vector<Stretch> & stretches, bool wants_logits) {
    const std::string key = key_of(wants_logits ? "tokens" : "chunk", stretches);
    return context.graph<TokenGraph>(key, [&]() {
        const Backbone & model = context.model();
        auto             built =
            std::make_unique<TokenGraph>(context, node_budget(model, model.config.n_layer, int(stretches.size()), 64));
        Graph & g   = built->graph;
        built->rows = std::make_unique<RowInputs>(g, "rows", stretches, false);
        built->ids  = g.input("ids", GGML_TYPE_I32, built->rows->n_rows());
        Node    x   = embed(g, model.embedding, built->ids);
        Queries kept;
        if (wants_logits) {
            const bool all_single = built->rows->n_rows() == int(stretches.size());
            if (all_single) {
                Node out      = run_layers(g, model, 0, model.config.n_layer, x, built->rows->rows(), context.cache());
                built->logits = logits(g, model, out);
            } else {
                built->last       = std::make_unique<RowInputs>(g, "last", last_rows(stretches), false);
                built->last_index = g.input("last.index", GGML_TYPE_I32, int64_t(stretches.size()));
                kept.index        = built->last_index;
                kept.positions    = built->last->rows().positions;
                kept.segments     = built->last->rows().segments;
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

int prefill_chunks(Context & context, const Prompt & prompt, int & applications) {
    const int n_batch = context.options().n_batch;
    int       done    = prompt.n_kept;
    while (int(prompt.tokens.size()) - done > n_batch) {
        const Tokens chunk(prompt.tokens.begin() + done, prompt.tokens.begin() + done + n_batch);
        run_tokens(context, { stretch(prompt.stream, done, n_batch) }, chunk, false, applications);
        done += n_batch;
    }
    return done;
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
        stretches.push_back(stretch(prompt.stream, done, int(prompt.tokens.size()) - done));
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
