#include "infer/trace.h"

#include "text/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace penelope {

namespace {

constexpr int kBestTokens = 5;

struct HeadGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node rows   = nullptr;
    Node logits = nullptr;
};

double dot(const float * a, const float * b, int n) {
    return std::inner_product(a, a + n, b, 0.0);
}

std::vector<std::vector<TokenScore>> best_tokens(Context & context, const Tokenizer & tokenizer,
                                                 const StateTensor & state) {
    const int   n_rows = int(state.shape[0]);
    HeadGraph & built  = context.graph<HeadGraph>("head" + std::to_string(n_rows), {}, [&]() {
        auto fresh    = std::make_unique<HeadGraph>(context);
        fresh->rows   = fresh->graph.input("rows", GGML_TYPE_F32, context.model().config.n_embd, n_rows);
        fresh->logits = logits(fresh->graph, context.model(), fresh->rows);
        fresh->graph.output(fresh->logits);
        return fresh;
    });
    context.prepare(built);
    built.graph.set(built.rows, state.data);
    context.compute(built);
    const std::vector<float> all     = get_node(built.logits);
    const int                n_vocab = tokenizer.n_vocab();

    std::vector<std::vector<TokenScore>> best;
    std::vector<int32_t>                 ids(static_cast<size_t>(n_vocab));
    for (int row = 0; row < n_rows; row++) {
        const float * scores = all.data() + ptrdiff_t(row) * context.model().config.n_vocab;
        std::iota(ids.begin(), ids.end(), 0);
        const int n = std::min(kBestTokens, n_vocab);
        std::partial_sort(ids.begin(), ids.begin() + n, ids.end(),
                          [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
        best.emplace_back();
        for (int i = 0; i < n; i++) {
            best.back().push_back(
                { ids[size_t(i)], tokenizer.decode({ ids[size_t(i)] }, { true }), scores[ids[size_t(i)]] });
        }
    }
    return best;
}

void describe(const StateTensor & state, const StateTensor * before, std::vector<float> & norms,
              std::vector<float> & cosines) {
    const int d = int(state.shape[1]);
    for (int row = 0; row < int(state.shape[0]); row++) {
        const float * x    = state.data.data() + ptrdiff_t(row) * d;
        const double  norm = std::sqrt(dot(x, x, d));
        norms.push_back(float(norm));
        if (before) {
            const float * y     = before->data.data() + ptrdiff_t(row) * d;
            const double  other = std::sqrt(dot(y, y, d));
            cosines.push_back(norm > 0 && other > 0 ? float(dot(x, y, d) / (norm * other)) : 0.0f);
        }
    }
}

} // namespace

TraceStep trace_step(Context & context, const Tokenizer & tokenizer, LatentSteps & steps, int stream,
                     std::vector<StateTensor> & before, bool attention) {
    std::vector<StateTensor> now = steps.read_state(stream);

    TraceStep step;
    step.t                  = steps.step(stream);
    step.layer_applications = steps.layer_applications(stream);
    if (const StateTensor * memory = find_state(now, "M")) {
        describe(*memory, find_state(before, "M"), step.memory_norms, step.memory_cosines);
        step.memory_top = best_tokens(context, tokenizer, *memory);
        step.memory     = memory->data;
    }
    if (const StateTensor * readout = find_state(now, "R")) {
        describe(*readout, find_state(before, "R"), step.readout_norms, step.readout_cosines);
        step.readout_top = best_tokens(context, tokenizer, *readout);
        step.readout     = readout->data;
    }
    if (const StateTensor * features = find_state(now, "H")) {
        step.features_top = best_tokens(context, tokenizer, *features);
        step.features     = features->data;
    }
    if (const StateTensor * alpha = find_state(now, "alpha")) {
        step.alpha = alpha->data[0];
    }
    if (attention) {
        step.attention = steps.attention(stream, before);
    }
    before = std::move(now);
    return step;
}

} // namespace penelope
