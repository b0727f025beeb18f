// Rotary positions and grouped-query attention.
#include "graph/ops.h"

#include "graph/tape.h"

namespace penelope {

Node rope(Graph & g, Node x, Node positions, int head_dim, const RopeParams & params) {
    ggml_context * ctx    = g.ctx();
    const int64_t  n_head = x->ne[0] / head_dim;
    Node heads = ggml_reshape_3d(ctx, x, head_dim, n_head, x->ne[1]); // [head_dim, n_head, rows]
    Node turned = ggml_rope_ext(ctx, heads, positions, params.factors, params.n_dims, params.mode, params.n_ctx_orig,
                                params.freq_base, 1.0f, 0.0f, 1.0f, 0.0f, 0.0f);
    return ggml_reshape_2d(ctx, turned, x->ne[0], x->ne[1]);
}

namespace {

// Heads of a row matrix as their own dimension, without a copy: [head_dim * n, rows] -> [head_dim, rows, n].
Node split_heads(Graph & g, Node x, int head_dim) {
    const int64_t n = x->ne[0] / head_dim;
    return ggml_view_3d(g.ctx(), x, head_dim, x->ne[1], n, x->nb[1], ggml_row_size(x->type, head_dim), 0);
}

Node fused_attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape) {
    Node out = ggml_flash_attn_ext(g.ctx(), split_heads(g, q, shape.head_dim), split_heads(g, k, shape.head_dim),
                                   split_heads(g, v, shape.head_dim), mask, shape.scale, 0.0f, 0.0f);
    return ggml_reshape_2d(g.ctx(), out, q->ne[0], q->ne[1]); // result comes as [head_dim, n_head, n_q]
}

Node explicit_attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape) {
    ggml_context * ctx     = g.ctx();
    Node           queries = split_heads(g, q, shape.head_dim);                    // [head_dim, n_q, n_head]
    Node           keys    = split_heads(g, k, shape.head_dim);                    // [head_dim, n_kv, n_head_kv]
    Node           values  = split_heads(g, v, shape.head_dim);
    Node           scores  = ggml_mul_mat(ctx, keys, queries);                     // [n_kv, n_q, n_head]
    Node           weights = ggml_soft_max_ext(ctx, scores, mask, shape.scale, 0.0f);
    Node           columns = ggml_cont(ctx, ggml_transpose(ctx, values));          // [n_kv, head_dim, n_head_kv]
    Node           heads   = ggml_mul_mat(ctx, columns, weights);                  // [head_dim, n_q, n_head]
    return ggml_cont_2d(ctx, ggml_permute(ctx, heads, 0, 2, 1, 3), q->ne[0], q->ne[1]);
}

} // namespace

Node attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape) {
    if (!g.tape()) {
        return fused_attention(g, q, k, v, mask, shape);
    }
    return explicit_attention(g, q, k, v, mask, shape);
}

} // namespace penelope
