// Putting rows together and taking them apart.
#include "graph/ops.h"

namespace penelope {

Node concat_rows(Graph & g, const std::vector<Node> & parts) {
    Node all = parts.front();
    for (size_t i = 1; i < parts.size(); i++) {
        all = ggml_concat(g.ctx(), all, parts[i], 1);
    }
    return all;
}

Node concat_features(Graph & g, Node a, Node b) { return ggml_concat(g.ctx(), a, b, 0); }

Node slice_rows(Graph & g, Node x, int64_t first, int64_t count) {
    return ggml_view_2d(g.ctx(), x, x->ne[0], count, x->nb[1], size_t(first) * x->nb[1]);
}

Node slice_features(Graph & g, Node x, int64_t first, int64_t count) {
    return ggml_cont(g.ctx(), ggml_view_2d(g.ctx(), x, count, x->ne[1], x->nb[1], size_t(first) * x->nb[0]));
}

Node repeat_rows(Graph & g, Node x, int64_t times) {
    return times == 1 ? x : ggml_repeat_4d(g.ctx(), x, x->ne[0], x->ne[1] * times, 1, 1);
}

Node mean_rows(Graph & g, Node x, int64_t group) {
    ggml_context * ctx = g.ctx();
    const int64_t  d   = x->ne[0];
    Node grouped = ggml_reshape_3d(ctx, x, d, group, x->ne[1] / group);             // [d, group, n]
    Node columns = ggml_cont(ctx, ggml_permute(ctx, grouped, 1, 0, 2, 3));          // [group, d, n]
    Node sums    = ggml_sum_rows(ctx, columns);                                     // [1, d, n]
    return ggml_scale(ctx, ggml_reshape_2d(ctx, sums, d, x->ne[1] / group), 1.0f / float(group));
}

Node gather_rows(Graph & g, Node x, Node index) { return ggml_get_rows(g.ctx(), x, index); }

Node reshape_rows(Graph & g, Node x, int64_t features, int64_t rows) { return ggml_reshape_2d(g.ctx(), x, features, rows); }

} // namespace penelope
