#include "graph/ops_delta.h"

#include "graph/nodes.h"
#include "graph/ops.h"
#include "graph/ops_delta_chunks.h"
#include "graph/tape.h"

namespace penelope {

Node softplus(Graph & g, Node a) {
    Node y = ggml_softplus(g.ctx(), a);
    if (g.tape() && g.tape()->requires_grad(a)) {
        g.tape()->record(y, [a](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, a, ggml_mul(graph.ctx(), dy, ggml_sigmoid(graph.ctx(), a)));
        });
    }
    return y;
}

namespace {

Node zeros(Graph & g, int64_t n) {
    return ggml_fill(g.ctx(), ggml_arange(g.ctx(), 0.0f, float(n), 1.0f), 0.0f);
}

// One tap of every kernel: weight [width, C] -> [C].
Node tap(Graph & g, Node taps, int64_t i) {
    return ggml_view_1d(g.ctx(), taps, taps->ne[0], size_t(i) * taps->nb[1]);
}

// Sum over taps of the shifted rows, feature by feature.
Convolved explicit_conv(Graph & g, Node x, Node weight, Node tail) {
    ggml_context * ctx   = g.ctx();
    const int64_t  n     = x->ne[1];
    const int64_t  width = weight->ne[0];
    Node           past  = tail ? reshape_rows(g, tail, x->ne[0], width - 1) : nullptr;
    if (!past) {
        past = ggml_reshape_2d(ctx, zeros(g, x->ne[0] * (width - 1)), x->ne[0], width - 1);
    }
    Node all  = concat_rows(g, { past, x }); // [C, width - 1 + n]
    Node taps = transpose_copy(g, weight);   // [C, width]
    Node y    = nullptr;
    for (int64_t i = 0; i < width; i++) {
        ctx          = g.ctx();
        Node shifted = ggml_view_2d(ctx, all, all->ne[0], n, all->nb[1], size_t(i) * all->nb[1]);
        Node part    = ggml_mul(ctx, shifted, tap(g, taps, i));
        y            = y ? ggml_add(ctx, y, part) : part;
    }
    Tape * tape = g.tape();
    if (tape->requires_grad(all) || tape->requires_grad(weight)) {
        tape->record(y, [all, weight, taps, n, width](Graph & graph, Node dy) {
            Node d_taps = nullptr; // [C, width]
            for (int64_t i = 0; i < width; i++) {
                if (graph.tape()->requires_grad(all)) {
                    graph.tape()->accumulate_slice(graph, all, 1, i, ggml_mul(graph.ctx(), dy, tap(graph, taps, i)));
                }
                if (graph.tape()->requires_grad(weight)) {
                    Node shifted = ggml_view_2d(graph.ctx(), all, all->ne[0], n, all->nb[1], size_t(i) * all->nb[1]);
                    Node d_tap   = sum_to(graph, ggml_mul(graph.ctx(), dy, shifted), tap(graph, taps, i));
                    d_taps       = d_taps ? ggml_concat(graph.ctx(), d_taps, d_tap, 1) : d_tap;
                }
            }
            if (d_taps) {
                graph.tape()->accumulate(graph, weight, transpose_copy(graph, d_taps));
            }
        });
    }
    return { y, reshape_rows(g, slice_rows(g, all, n, width - 1), x->ne[0] * (width - 1), 1) };
}

// ggml_ssm_conv wants the rows of one feature contiguous; the tail is stored that way too.
Convolved fused_conv(Graph & g, Node x, Node weight, Node tail, Node n_valid) {
    ggml_context * ctx    = g.ctx();
    const int64_t  n      = x->ne[1];
    const int64_t  before = weight->ne[0] - 1;
    Node           past   = ggml_reshape_2d(ctx, tail ? tail : zeros(g, before * x->ne[0]), before, x->ne[0]);
    Node           all    = ggml_concat(ctx, past, ggml_transpose(ctx, x), 0); // [width - 1 + n, C]
    Node           y      = ggml_ssm_conv(ctx, all, weight);
    Node           last   = ggml_view_2d(ctx, all, before, x->ne[0], all->nb[1], size_t(n) * all->nb[0]);
    if (n_valid) {
        Node places = ggml_add(ctx, ggml_arange(ctx, 0.0f, float(before), 1.0f), n_valid);
        Node rows   = ggml_cont(ctx, ggml_transpose(ctx, all)); // [C, width - 1 + n]
        last        = ggml_transpose(ctx, ggml_get_rows(ctx, rows, ggml_cast(ctx, places, GGML_TYPE_I32)));
    }
    return { ggml_reshape_2d(ctx, y, x->ne[0], n), ggml_cont_1d(ctx, last, before * x->ne[0]) };
}

DeltaResult fused_delta(Graph & g, Node q, Node k, Node v, Node decay, Node beta, Node state, const DeltaShape & s) {
    ggml_context * ctx   = g.ctx();
    const int64_t  n     = v->ne[1];
    const auto     heads = [&](Node x, int64_t dim, int64_t count) {
        return ggml_view_3d(ctx, x, dim, count, n, size_t(dim) * x->nb[0], x->nb[1], 0);
    };
    const int64_t S = s.head_dim, H = s.n_value_heads;
    state    = state ? state : zeros(g, S * S * H);
    Node out = ggml_gated_delta_net(ctx, heads(q, S, s.n_key_heads), heads(k, S, s.n_key_heads), heads(v, S, H),
                                    ggml_reshape_3d(ctx, decay, 1, H, n), ggml_reshape_3d(ctx, beta, 1, H, n),
                                    ggml_reshape_3d(ctx, state, S, S, H), 1); // [S * H, n + S]
    return { ggml_view_2d(ctx, out, S * H, n, out->nb[1], 0),
             ggml_view_1d(ctx, out, S * S * H, size_t(n) * out->nb[1]) };
}

// Repeats the key heads so that every value head has its own.
Node tile_heads(Graph & g, Node x, int64_t times) {
    Node all = x;
    for (int64_t i = 1; i < times; i++) {
        all = concat_features(g, all, x);
    }
    return all;
}

} // namespace

Convolved causal_conv(Graph & g, Node x, Node weight, Node tail, Node n_valid) {
    return g.tape() ? explicit_conv(g, x, weight, tail) : fused_conv(g, x, weight, tail, n_valid);
}

DeltaResult gated_delta(Graph & g, Node q, Node k, Node v, Node decay, Node beta, Node state,
                        const DeltaShape & shape) {
    if (!g.tape()) {
        return fused_delta(g, q, k, v, decay, beta, state, shape);
    }
    const int64_t times = shape.n_value_heads / shape.n_key_heads;
    return chunked_delta(g, tile_heads(g, q, times), tile_heads(g, k, times), v, decay, beta, state, shape.head_dim,
                         shape.n_value_heads);
}

} // namespace penelope
