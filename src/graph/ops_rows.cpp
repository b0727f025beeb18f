// Concatenating, slicing, gathering and averaging rows.
#include "graph/ops.h"

#include "graph/nodes.h"
#include "graph/tape.h"

#include <algorithm>

namespace penelope {

Node concat_rows(Graph & g, const std::vector<Node> & parts) {
    if (parts.size() == 1) {
        return parts.front();
    }
    Node   y    = join_rows(g, parts);
    Tape * tape = g.tape();
    if (tape && std::any_of(parts.begin(), parts.end(), [&](Node part) { return tape->requires_grad(part); })) {
        tape->record(y, [parts](Graph & graph, Node dy) {
            int64_t first = 0;
            for (Node part : parts) {
                const size_t offset = size_t(first) * dy->nb[1];
                graph.tape()->accumulate(graph, part,
                                         ggml_view_2d(graph.ctx(), dy, dy->ne[0], part->ne[1], dy->nb[1], offset));
                first += part->ne[1];
            }
        });
    }
    return y;
}

Node pad_rows(Graph & g, Node x, int64_t rows) {
    if (x->ne[1] == rows) {
        return x;
    }
    Node y = ggml_pad(g.ctx(), x, 0, int(rows - x->ne[1]), 0, 0);
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(y, [x](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, x, ggml_view_2d(graph.ctx(), dy, x->ne[0], x->ne[1], dy->nb[1], 0));
        });
    }
    return y;
}

Node concat_features(Graph & g, Node a, Node b) {
    Node   y    = ggml_concat(g.ctx(), a, b, 0);
    Tape * tape = g.tape();
    if (tape && (tape->requires_grad(a) || tape->requires_grad(b))) {
        tape->record(y, [a, b](Graph & graph, Node dy) {
            const size_t middle = size_t(a->ne[0]) * dy->nb[0];
            graph.tape()->accumulate(graph, a, ggml_view_2d(graph.ctx(), dy, a->ne[0], dy->ne[1], dy->nb[1], 0));
            graph.tape()->accumulate(graph, b, ggml_view_2d(graph.ctx(), dy, b->ne[0], dy->ne[1], dy->nb[1], middle));
        });
    }
    return y;
}

Node slice_rows(Graph & g, Node x, int64_t first, int64_t count) {
    Node y = ggml_view_2d(g.ctx(), x, x->ne[0], count, x->nb[1], size_t(first) * x->nb[1]);
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(
            y, [x, first](Graph & graph, Node dy) { graph.tape()->accumulate_slice(graph, x, 1, first, dy); });
    }
    return y;
}

Node slice_features(Graph & g, Node x, int64_t first, int64_t count) {
    Node y = ggml_cont(g.ctx(), ggml_view_2d(g.ctx(), x, count, x->ne[1], x->nb[1], size_t(first) * x->nb[0]));
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(
            y, [x, first](Graph & graph, Node dy) { graph.tape()->accumulate_slice(graph, x, 0, first, dy); });
    }
    return y;
}

Node repeat_rows(Graph & g, Node x, int64_t times) {
    if (times == 1) {
        return x;
    }
    Node y = ggml_repeat_4d(g.ctx(), x, x->ne[0], x->ne[1] * times, 1, 1);
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(y, [x](Graph & graph, Node dy) { graph.tape()->accumulate(graph, x, sum_to(graph, dy, x)); });
    }
    return y;
}

Node mean_rows(Graph & g, Node x, int64_t group) {
    ggml_context * ctx     = g.ctx();
    const int64_t  d       = x->ne[0];
    const int64_t  n       = x->ne[1] / group;
    Node           grouped = ggml_reshape_3d(ctx, x, d, group, n);           // [d, group, n]
    Node           sums    = ggml_sum_rows(ctx, transpose_copy(g, grouped)); // [1, d, n]
    Node           y       = ggml_scale(ctx, ggml_reshape_2d(ctx, sums, d, n), 1.0f / float(group));
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(y, [x, d, group, n](Graph & graph, Node dy) {
            Node share  = ggml_reshape_3d(graph.ctx(), ggml_scale(graph.ctx(), dy, 1.0f / float(group)), d, 1, n);
            Node shares = ggml_repeat_4d(graph.ctx(), share, d, group, n, 1);
            graph.tape()->accumulate(graph, x, ggml_reshape_2d(graph.ctx(), shares, d, group * n));
        });
    }
    return y;
}

Node gather_rows(Graph & g, Node x, Node index) {
    Node y = ggml_get_rows(g.ctx(), x, index);
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(y, [x, index](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, x, ggml_get_rows_back(graph.ctx(), dy, index, x));
        });
    }
    return y;
}

Node reshape_rows(Graph & g, Node x, int64_t features, int64_t rows) {
    Node y = ggml_reshape_2d(g.ctx(), x, features, rows);
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(y, [x](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, x, ggml_reshape_2d(graph.ctx(), dy, x->ne[0], x->ne[1]));
        });
    }
    return y;
}

} // namespace penelope
