#include "infer/trace.h"

#include "base/error.h"
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

std::vector<TraceStep> trace_states(Context & context, const Tokenizer & tokenizer,
                                    const std::vector<StateTensor> & states) {
    if (!find_state(states, "M_0")) {
        throw Error(ErrorKind::usage, "--trace: the method has no memory states", "give a Penelope sidecar");
    }
    std::vector<TraceStep> steps;
    for (int t = 0;; t++) {
        const std::string   n       = std::to_string(t);
        const StateTensor * memory  = find_state(states, "M_" + n);
        const StateTensor * readout = find_state(states, "R_" + n);
        if (!memory || !readout) {
            return steps;
        }
        const std::string b = std::to_string(t - 1);
        TraceStep         step;
        step.t = t;
        describe(*memory, find_state(states, "M_" + b), step.memory_norms, step.memory_cosines);
        describe(*readout, find_state(states, "R_" + b), step.readout_norms, step.readout_cosines);
        if (const StateTensor * alpha = find_state(states, "alpha_" + n)) {
            step.alpha = alpha->data[0];
        }
        step.memory_top  = best_tokens(context, tokenizer, *memory);
        step.readout_top = best_tokens(context, tokenizer, *readout);
        if (const StateTensor * features = find_state(states, "H_" + n)) {
            step.features_top = best_tokens(context, tokenizer, *features);
        }
        steps.push_back(std::move(step));
    }
}

TraceStep trace_step(Context & context, const Tokenizer & tokenizer, int t, const std::vector<StateTensor> & now,
                     const std::vector<StateTensor> & before) {
    TraceStep step;
    step.t = t;
    if (const StateTensor * memory = find_state(now, "M")) {
        describe(*memory, find_state(before, "M"), step.memory_norms, step.memory_cosines);
        step.memory_top = best_tokens(context, tokenizer, *memory);
    }
    if (const StateTensor * readout = find_state(now, "R")) {
        describe(*readout, find_state(before, "R"), step.readout_norms, step.readout_cosines);
        step.readout_top = best_tokens(context, tokenizer, *readout);
    }
    if (const StateTensor * features = find_state(now, "H")) {
        step.features_top = best_tokens(context, tokenizer, *features);
    }
    return step;
}

} // namespace penelope
