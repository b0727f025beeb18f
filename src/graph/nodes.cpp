#include "graph/nodes.h"

#include "graph/batch_invariance.h"
#include "graph/kernels.h"
#include "graph/packed_product.h"
#include "graph/tape.h"

namespace penelope {

namespace {

bool has_host_kernels(Graph & g) {
    return g.tape() && g.tape()->host_kernels();
}

} // namespace

Node matrix_product(Graph & g, Node a, Node b, SumPrecision sum) {
    if (is_packed(a)) {
        return packed_product(g, a, b);
    }
    if (g.tape() && !g.tape()->host_kernels()) {
        for (Node * operand : { &a, &b }) {
            if ((*operand)->type == GGML_TYPE_F32 && !ggml_is_contiguous(*operand)) {
                *operand = ggml_cont(g.ctx(), *operand);
            }
        }
    }
    if (const int64_t n = n_invariant_splits(g, a, b); n > 1) {
        Node each = ggml_mul_mat(g.ctx(), a, ggml_reshape_3d(g.ctx(), b, b->ne[0], b->ne[1] / n, n));
        return ggml_reshape_2d(g.ctx(), each, a->ne[1], b->ne[1]);
    }
    Node y = ggml_mul_mat(g.ctx(), a, b);
    if (g.tape() || sum == SumPrecision::f32) {
        ggml_mul_mat_set_prec(y, GGML_PREC_F32);
    }
    return y;
}

Node transpose_copy(Graph & g, Node x) {
    if (has_host_kernels(g) && x->type == GGML_TYPE_F32) {
        return cpu_transpose(g, x, 0);
    }
    return ggml_cont(g.ctx(), ggml_transpose(g.ctx(), x));
}

Node transpose_padded(Graph & g, Node x) {
    if (has_host_kernels(g) && x->type == GGML_TYPE_F32) {
        return cpu_transpose(g, x, GGML_PAD(x->ne[1], kProductUnit) - x->ne[1]);
    }
    return transpose_copy(g, x);
}

Node dequantized(Graph & g, Node x) {
    if (!ggml_is_quantized(x->type)) {
        return x;
    }
    // Every backend dequantizes all types in get_rows; few do in cpy.
    Node all = ggml_cast(g.ctx(), ggml_arange(g.ctx(), 0.0f, float(x->ne[1]), 1.0f), GGML_TYPE_I32);
    return ggml_get_rows(g.ctx(), x, all);
}

Node join_rows(Graph & g, const std::vector<Node> & parts) {
    // As a balanced tree every row is copied log2(parts) times instead of once per part.
    std::vector<Node> level = parts;
    while (level.size() > 1) {
        std::vector<Node> next;
        for (size_t i = 0; i + 1 < level.size(); i += 2) {
            next.push_back(ggml_concat(g.ctx(), level[i], level[i + 1], 1));
        }
        if (level.size() % 2 != 0) {
            next.push_back(level.back());
        }
        level = std::move(next);
    }
    return level.front();
}

Node sum_to(Graph & g, Node x, Node like) {
    return ggml_are_same_shape(x, like) ? x : ggml_repeat_back(g.ctx(), x, like);
}

Node zeros_like(Graph & g, Node node) {
    return ggml_fill(g.ctx(), node, 0.0f);
}

} // namespace penelope
