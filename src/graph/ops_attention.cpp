// Rotary positions and grouped-query attention.
#include "graph/ops.h"

#include "graph/nodes.h"
#include "graph/tape.h"

namespace penelope {

Node rope(Graph & g, Node x, Node positions, int head_dim, const RopeParams & params) {
    if (params.n_dims == 0) {
        return x;
    }
    ggml_context * ctx    = g.ctx();
    const int64_t  n_head = x->ne[0] / head_dim;
    Node           heads  = ggml_reshape_3d(ctx, x, head_dim, n_head, x->ne[1]); // [head_dim, n_head, rows]
    Node turned = ggml_rope_ext(ctx, heads, positions, params.factors, params.n_dims, params.mode, params.n_ctx_orig,
                                params.freq_base, params.freq_scale, 0.0f, params.magnitude, 0.0f, 0.0f);
    Node y      = ggml_reshape_2d(ctx, turned, x->ne[0], x->ne[1]);
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(y, [x, positions, head_dim, n_head, params](Graph & graph, Node dy) {
            ggml_context * c        = graph.ctx();
            Node           d_turned = ggml_reshape_3d(c, dy, head_dim, n_head, dy->ne[1]);
            Node d_heads = ggml_rope_ext_back(c, d_turned, positions, params.factors, params.n_dims, params.mode,
                                              params.n_ctx_orig, params.freq_base, params.freq_scale, 0.0f,
                                              params.magnitude, 0.0f, 0.0f);
            graph.tape()->accumulate(graph, x, ggml_reshape_2d(graph.ctx(), d_heads, x->ne[0], x->ne[1]));
        });
    }
    return y;
}

namespace {

// Heads of a row matrix as their own dimension, without a copy: [head_dim * n, rows] -> [head_dim, rows, n].
Node split_heads(Graph & g, Node x, int head_dim) {
    const int64_t n = x->ne[0] / head_dim;
    return ggml_view_3d(g.ctx(), x, head_dim, x->ne[1], n, x->nb[1], ggml_row_size(x->type, head_dim), 0);
}

// The inverse as a non-contiguous view: [head_dim, rows, n] -> [head_dim * n, rows] once copied.
Node merge_heads(Graph & g, Node heads, int64_t n_head, int64_t rows) {
    Node split = ggml_reshape_3d(g.ctx(), heads, heads->ne[0], rows, n_head);
    return ggml_cont_2d(g.ctx(), ggml_permute(g.ctx(), split, 0, 2, 1, 3), heads->ne[0] * n_head, rows);
}

// Splits the heads by the KV head they read: [head_dim, rows, n] -> [head_dim, rows, n / n_head_kv, n_head_kv].
Node split_by_kv_head(Graph & g, Node heads, int64_t n_head_kv) {
    const int64_t group = heads->ne[2] / n_head_kv;
    return ggml_view_4d(g.ctx(), heads, heads->ne[0], heads->ne[1], group, n_head_kv, heads->nb[1], heads->nb[2],
                        heads->nb[2] * size_t(group), 0);
}

Node fused_attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape) {
    Node heads[] = { split_heads(g, q, shape.head_dim), split_heads(g, k, shape.head_dim),
                     split_heads(g, v, shape.head_dim) };
    // With one query and one 3-D matrix, ggml's flash attention splits n_kv over the threads, so the rounding would
    // depend on the number of threads and on the longest sequence of the batch. With a 4-D matrix it does not split.
    if (q->ne[1] == 1 && shape.n_head_kv > 1) {
        for (Node & each : heads) {
            each = split_by_kv_head(g, each, shape.n_head_kv);
        }
    }
    Node out = ggml_flash_attn_ext(g.ctx(), heads[0], heads[1], heads[2], mask, shape.scale, 0.0f, 0.0f);
    ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);         // scores overflow F16 in some models
    return ggml_reshape_2d(g.ctx(), out, q->ne[0], q->ne[1]); // result comes as [head_dim, n_head, n_q]
}

// A matrix of the KV cache in a type that every backend can transpose.
Node as_float(Graph & g, Node v) {
    return v->type == GGML_TYPE_BF16 ? ggml_cast(g.ctx(), v, GGML_TYPE_F32) : dequantized(g, v);
}

// Query heads that share a KV head are adjacent, so they fold into rows: [head_dim, n_q * group, n_head_kv]. All
// products then run over n_head_kv matrices without broadcasting, in the backward too.
Node folded_heads(Graph & g, Node x, const AttentionShape & shape) {
    Node heads = ggml_cont(g.ctx(), split_heads(g, x, shape.head_dim)); // [head_dim, n_q, n_head]
    return ggml_reshape_3d(g.ctx(), heads, shape.head_dim, heads->ne[1] * (shape.n_head / shape.n_head_kv),
                           shape.n_head_kv);
}

struct AttentionNodes {
    Node queries; // [head_dim, n_q * group, n_head_kv]
    Node keys;    // [head_dim, n_kv, n_head_kv]
    Node values;  // [head_dim, n_kv, n_head_kv]
    Node weights; // [n_kv, n_q * group, n_head_kv], the softmax
};

void attention_backward(Graph & g, Node q, Node k, Node v, const AttentionNodes & a, const AttentionShape & shape,
                        Node dy) {
    ggml_context * ctx   = g.ctx();
    Tape &         tape  = *g.tape();
    Node           d_out = folded_heads(g, dy, shape); // like queries
    if (tape.requires_grad(v)) {
        Node dv = matrix_product(g, transpose_padded(g, d_out),
                                 transpose_padded(g, a.weights)); // [head_dim, n_kv, n_head_kv]
        tape.accumulate(g, v, merge_heads(g, dv, shape.n_head_kv, v->ne[1]));
    }
    if (!tape.requires_grad(q) && !tape.requires_grad(k)) {
        return;
    }
    Node d_weights = matrix_product(g, a.values, d_out); // like weights
    Node d_scores  = ggml_soft_max_ext_back(ctx, d_weights, a.weights, shape.scale, 0.0f);
    if (tape.requires_grad(q)) {
        Node dq = matrix_product(g, transpose_copy(g, a.keys), d_scores); // like queries
        tape.accumulate(g, q, merge_heads(g, dq, shape.n_head, q->ne[1]));
    }
    if (tape.requires_grad(k)) {
        Node dk = matrix_product(g, transpose_padded(g, a.queries), transpose_padded(g, d_scores)); // like keys
        tape.accumulate(g, k, merge_heads(g, dk, shape.n_head_kv, k->ne[1]));
    }
}

Node explicit_attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape) {
    ggml_context * ctx   = g.ctx();
    const int64_t  n_q   = q->ne[1];
    const int64_t  n_kv  = k->ne[1];
    const int64_t  group = shape.n_head / shape.n_head_kv;
    AttentionNodes a{};
    a.queries = folded_heads(g, q, shape);
    a.keys    = split_heads(g, k, shape.head_dim);
    a.values  = split_heads(g, v, shape.head_dim);
    Node scores =
        ggml_reshape_3d(ctx, matrix_product(g, a.keys, a.queries, SumPrecision::f32), n_kv, n_q, shape.n_head);
    Node soft = ggml_soft_max_ext(ctx, scores, mask, shape.scale, 0.0f);
    a.weights = ggml_reshape_3d(ctx, soft, n_kv, n_q * group, shape.n_head_kv);
    Node out  = matrix_product(g, transpose_copy(g, a.values), a.weights); // like queries
    Node y    = merge_heads(g, out, shape.n_head, n_q);

    Tape * tape = g.tape();
    if (!tape) {
        return y;
    }
    if (tape->requires_grad(q) || tape->requires_grad(k) || tape->requires_grad(v)) {
        tape->record(y,
                     [q, k, v, a, shape](Graph & graph, Node dy) { attention_backward(graph, q, k, v, a, shape, dy); });
    }
    return y;
}

} // namespace

Node batched_attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape) {
    GGML_ASSERT(!g.tape());
    // [head_dim * n, rows, streams] -> [head_dim, rows, n, streams]
    const auto heads = [&](Node x) {
        return ggml_view_4d(g.ctx(), x, shape.head_dim, x->ne[1], x->ne[0] / shape.head_dim, x->ne[2], x->nb[1],
                            ggml_row_size(x->type, shape.head_dim), x->nb[2], 0);
    };
    Node out = ggml_flash_attn_ext(g.ctx(), heads(q), heads(k), heads(v), mask, shape.scale, 0.0f, 0.0f);
    ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
    return ggml_reshape_3d(g.ctx(), out, q->ne[0], q->ne[1],
                           q->ne[2]); // result comes as [head_dim, n_head, n_q, streams]
}

Node attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape) {
    if (g.tape()) {
        return explicit_attention(g, q, k, as_float(g, v), mask, shape);
    }
    // No device has flash attention for every head size and KV type.
    Node fused = fused_attention(g, q, k, v, mask, shape);
    return g.supports(fused->view_src) ? fused : explicit_attention(g, q, k, as_float(g, v), mask, shape);
}

} // namespace penelope
