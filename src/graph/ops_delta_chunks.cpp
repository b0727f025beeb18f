#include "graph/ops_delta_chunks.h"

#include "graph/nodes.h"
#include "graph/tape.h"

#include <cmath>
#include <memory>

namespace penelope {

namespace {

// Rows of a chunk. With keys alike, beta near one and little decay the powers of N cancel: the error of the outputs is
// 2e-5 at 16 rows and 15 at 32.
constexpr int64_t kChunk = 16;

// How the rows of a sequence are cut: c rows a chunk, the last one filled up with zeros, which change nothing. Nodes of
// all chunks have H matrices per chunk in their third dimension, chunk after chunk.
struct ChunkLayout {
    int64_t S, H, n, n_chunks;

    int64_t padded() const { return n_chunks * kChunk; }
    int64_t batch() const { return n_chunks * H; }
    float   scale() const { return 1.0f / std::sqrt(float(S)); }
};

Node pad(Graph & g, Node x, const ChunkLayout & layout) {
    return layout.padded() == layout.n ? x : ggml_pad(g.ctx(), x, 0, int(layout.padded() - layout.n), 0, 0);
}

// [S * H, n] -> [S, c, batch]
Node to_chunks(Graph & g, Node x, const ChunkLayout & layout) {
    Node heads = ggml_reshape_4d(g.ctx(), pad(g, x, layout), layout.S, layout.H, kChunk, layout.n_chunks);
    return ggml_reshape_3d(g.ctx(), ggml_cont(g.ctx(), ggml_permute(g.ctx(), heads, 0, 2, 1, 3)), layout.S, kChunk,
                           layout.batch());
}

Node from_chunks(Graph & g, Node x, const ChunkLayout & layout) {
    Node heads =
        ggml_permute(g.ctx(), ggml_reshape_4d(g.ctx(), x, layout.S, kChunk, layout.H, layout.n_chunks), 0, 2, 1, 3);
    Node all = ggml_cont_2d(g.ctx(), heads, layout.S * layout.H, layout.padded());
    return ggml_view_2d(g.ctx(), all, all->ne[0], layout.n, all->nb[1], 0);
}

// [H, n] -> [c, 1, batch]
Node to_columns(Graph & g, Node x, const ChunkLayout & layout) {
    Node heads = ggml_reshape_3d(g.ctx(), pad(g, x, layout), layout.H, kChunk, layout.n_chunks);
    return ggml_reshape_3d(g.ctx(), transpose_copy(g, heads), kChunk, 1, layout.batch());
}

Node from_columns(Graph & g, Node x, const ChunkLayout & layout) {
    Node heads = transpose_copy(g, ggml_reshape_3d(g.ctx(), x, kChunk, layout.H, layout.n_chunks)); // [H, c, n_chunks]
    Node all   = ggml_reshape_2d(g.ctx(), heads, layout.H, layout.padded());
    return ggml_view_2d(g.ctx(), all, layout.H, layout.n, all->nb[1], 0);
}

// The same numbers along the other dimension: [c, 1, batch] -> [1, c, batch].
Node as_row(Graph & g, Node column) {
    return ggml_reshape_3d(g.ctx(), column, 1, column->ne[0], column->ne[2]);
}
Node as_column(Graph & g, Node row) {
    return ggml_reshape_3d(g.ctx(), row, row->ne[1], 1, row->ne[2]);
}

// The matrices of one chunk.
Node at(Graph & g, Node all, int64_t chunk, const ChunkLayout & layout) {
    return ggml_view_3d(g.ctx(), all, all->ne[0], all->ne[1], layout.H, all->nb[1], all->nb[2],
                        size_t(chunk * layout.H) * all->nb[2]);
}

Node join(Graph & g, std::vector<Node> parts) {
    while (parts.size() > 1) {
        std::vector<Node> next;
        for (size_t i = 0; i + 1 < parts.size(); i += 2) {
            next.push_back(ggml_concat(g.ctx(), parts[i], parts[i + 1], 2));
        }
        if (parts.size() % 2 != 0) {
            next.push_back(parts.back());
        }
        parts = std::move(next);
    }
    return parts.front();
}

Node strictly_lower(Graph & g, Node x) {
    return ggml_tri(g.ctx(), x, GGML_TRI_TYPE_LOWER);
}

// What stands inside the chunks, needed again by the backward. Matrices are [j, i, batch]: row i along the second
// dimension.
struct IntraChunk {
    ChunkLayout layout;
    Node        q, k;                         // [S, c, batch]
    Node        beta;                         // [c, 1, batch]
    Node        decayed, left, whole;         // e^G and e^(tau - G) as [1, c, batch]; e^tau [1, 1, batch]
    Node        D, KK, P, T;                  // T without the identity
    Node        decayed_q, decayed_k, left_k; // e^G q / sqrt(S), e^G k, e^(tau - G) k: [S, c, batch]
    Node        v;                            // [c, S, batch]
};

// (I - N)^-1 - I by repeated squaring: (I + N)(I + N^2)(I + N^4)...
Node inverse_without_identity(Graph & g, Node N) {
    ggml_context * ctx   = g.ctx();
    Node           sum   = N;
    Node           power = N;
    for (int64_t reach = 2; reach < kChunk; reach *= 2) {
        power     = matrix_product(g, transpose_copy(g, power), power);
        Node more = matrix_product(g, transpose_copy(g, power), sum);
        sum       = ggml_add(ctx, ggml_add(ctx, sum, power), more);
    }
    return sum;
}

IntraChunk intra_chunk(Graph & g, Node q, Node k, Node v, Node decay, Node beta, const ChunkLayout & layout) {
    ggml_context * ctx = g.ctx();
    IntraChunk     in{};
    in.layout = layout;
    in.q      = to_chunks(g, q, layout);
    in.k      = to_chunks(g, k, layout);
    in.v      = transpose_copy(g, to_chunks(g, v, layout));
    in.beta   = to_columns(g, beta, layout);

    Node sums = ggml_cumsum(ctx, to_columns(g, decay, layout)); // G, [c, 1, batch]
    Node rows = ggml_repeat_4d(ctx, as_row(g, sums), kChunk, kChunk, layout.batch(), 1);
    in.D      = ggml_exp(ctx, ggml_diag_mask_inf(ctx, ggml_sub(ctx, rows, sums), 0));
    Node last = ggml_cont(
        ctx, ggml_view_3d(ctx, sums, 1, 1, layout.batch(), sums->nb[1], sums->nb[2], size_t(kChunk - 1) * sums->nb[0]));
    in.whole   = ggml_exp(ctx, last);
    in.decayed = as_row(g, ggml_exp(ctx, sums));
    in.left    = as_row(g, ggml_exp(ctx, ggml_sub(ctx, ggml_repeat_4d(ctx, last, kChunk, 1, layout.batch(), 1), sums)));

    in.KK        = matrix_product(g, in.k, in.k);
    Node N       = ggml_mul(ctx, ggml_mul(ctx, in.KK, in.D), as_row(g, in.beta));
    in.T         = inverse_without_identity(g, ggml_neg(ctx, strictly_lower(g, N)));
    in.P         = ggml_scale(ctx, ggml_mul(ctx, matrix_product(g, in.k, in.q), in.D), layout.scale());
    in.decayed_q = ggml_scale(ctx, ggml_mul(ctx, in.q, in.decayed), layout.scale());
    in.decayed_k = ggml_mul(ctx, in.k, in.decayed);
    in.left_k    = ggml_mul(ctx, in.k, in.left);
    return in;
}

// What goes from chunk to chunk; A[i] enters chunk i and is null where nothing came before.
struct InterChunk {
    std::vector<Node> X, W; // [c, S, H]
    std::vector<Node> A;    // [S keys, S values, H]
};

// d_y [S * H, n] and d_state, either may be null.
void chunked_delta_backward(Graph & g, const IntraChunk & in, const InterChunk & inter, Node d_y, Node d_state, Node q,
                            Node k, Node v, Node decay, Node beta, Node state) {
    ggml_context *      ctx    = g.ctx();
    const ChunkLayout & layout = in.layout;
    const auto          plus   = [&](Node a, Node b) { return a && b ? ggml_add(ctx, a, b) : a ? a : b; };
    Node                dY     = d_y ? to_chunks(g, d_y, layout) : zeros_like(g, in.q); // [S, c, batch]
    Node                dY_t   = transpose_copy(g, dY);
    Node                P_t    = transpose_copy(g, in.P);
    Node                T_t    = transpose_copy(g, in.T);
    Node                from_q = transpose_copy(g, in.decayed_q); // [c, S, batch]
    Node                from_k = transpose_copy(g, in.decayed_k);

    Node              dA = d_state ? ggml_reshape_3d(ctx, d_state, layout.S, layout.S, layout.H) : nullptr;
    std::vector<Node> dR(size_t(layout.n_chunks)), dX(size_t(layout.n_chunks)), dA_out(size_t(layout.n_chunks));
    for (int64_t i = layout.n_chunks - 1; i >= 0; i--) {
        ctx     = g.ctx();
        Node dW = matrix_product(g, at(g, P_t, i, layout), at(g, dY_t, i, layout)); // [c, S, H]
        if (dA) {
            dW = ggml_add(ctx, dW, matrix_product(g, at(g, in.left_k, i, layout), dA));
        }
        dA_out[size_t(i)] = dA;
        dR[size_t(i)]     = ggml_add(ctx, dW, matrix_product(g, at(g, T_t, i, layout), dW));
        dX[size_t(i)]     = ggml_mul(ctx, dR[size_t(i)], at(g, in.beta, i, layout));
        if (inter.A[size_t(i)]) {
            dA = plus(dA ? ggml_mul(ctx, dA, at(g, in.whole, i, layout)) : nullptr,
                      ggml_sub(ctx, matrix_product(g, at(g, from_q, i, layout), at(g, dY_t, i, layout)),
                               matrix_product(g, at(g, from_k, i, layout), dX[size_t(i)])));
            g.expand(dA);
        }
    }
    ctx = g.ctx();
    if (state && g.tape()->requires_grad(state)) {
        g.tape()->accumulate(g, state, ggml_reshape_2d(ctx, dA, state->ne[0], state->ne[1]));
    }

    Node X    = transpose_copy(g, join(g, inter.X)); // [S, c, batch] from here on
    Node W    = transpose_copy(g, join(g, inter.W));
    Node dR_s = transpose_copy(g, join(g, dR));
    Node dX_s = transpose_copy(g, join(g, dX));
    g.tape()->accumulate(g, v, from_chunks(g, dX_s, layout));

    // Inside the chunks, through N and P.
    Node dN   = ggml_neg(ctx, matrix_product(g, W, dR_s)); // the gradient of -N: [j, i, batch]
    Node dP   = matrix_product(g, W, dY);
    Node dN_D = strictly_lower(g, ggml_mul(ctx, dN, in.D));
    Node dKK  = ggml_mul(ctx, dN_D, as_row(g, in.beta));
    Node dQK  = ggml_scale(ctx, ggml_mul(ctx, dP, in.D), layout.scale());
    Node d_beta =
        ggml_add(ctx, ggml_sum_rows(ctx, ggml_mul(ctx, dR_s, X)), ggml_sum_rows(ctx, ggml_mul(ctx, dN_D, in.KK)));
    Node k_t = transpose_copy(g, in.k);
    Node q_t = transpose_copy(g, in.q);
    Node dk  = ggml_add(ctx, matrix_product(g, k_t, ggml_add(ctx, dKK, transpose_copy(g, dKK))),
                        matrix_product(g, q_t, transpose_copy(g, dQK)));
    Node dq  = matrix_product(g, k_t, dQK);
    Node dD  = ggml_add(ctx, ggml_mul(ctx, dKK, in.KK), ggml_mul(ctx, dP, in.P));                // times D already
    Node dG  = ggml_sub(ctx, ggml_sum_rows(ctx, dD), ggml_sum_rows(ctx, transpose_copy(g, dD))); // [1, c, batch]

    // Through the states that entered the chunks ...
    const auto all_states = [&](const std::vector<Node> & states) -> Node {
        Node some = nullptr;
        for (Node one : states) {
            some = one ? one : some;
        }
        std::vector<Node> filled;
        for (Node one : states) {
            filled.push_back(one || !some ? one : zeros_like(g, some));
        }
        return some ? join(g, filled) : nullptr; // [S keys, S values, batch]
    };
    Node A = all_states(inter.A);
    if (A) {
        Node A_t       = transpose_copy(g, A);
        Node d_decay_q = matrix_product(g, A_t, dY);                  // [S keys, c, batch]
        Node d_decay_k = ggml_neg(ctx, matrix_product(g, A_t, dX_s)); // likewise
        dq             = ggml_add(ctx, dq, ggml_scale(ctx, ggml_mul(ctx, d_decay_q, in.decayed), layout.scale()));
        dk             = ggml_add(ctx, dk, ggml_mul(ctx, d_decay_k, in.decayed));
        dG             = ggml_add(ctx, dG,
                                  ggml_sum_rows(ctx, ggml_add(ctx, ggml_mul(ctx, d_decay_q, in.decayed_q),
                                                              ggml_mul(ctx, d_decay_k, in.decayed_k))));
    }
    // ... and those that left them.
    Node d_tau = nullptr; // [1, 1, batch]
    if (Node dA_all = all_states(dA_out)) {
        Node d_left_k = matrix_product(g, transpose_copy(g, dA_all), W);        // [S keys, c, batch]
        Node share    = ggml_sum_rows(ctx, ggml_mul(ctx, d_left_k, in.left_k)); // [1, c, batch]
        dk            = ggml_add(ctx, dk, ggml_mul(ctx, d_left_k, in.left));
        dG            = ggml_sub(ctx, dG, share);
        d_tau         = ggml_sum_rows(ctx, as_column(g, share));
        if (A) {
            Node both = ggml_reshape_3d(ctx, ggml_mul(ctx, A, dA_all), layout.S * layout.S, 1, layout.batch());
            d_tau     = ggml_add(ctx, d_tau, ggml_mul(ctx, ggml_sum_rows(ctx, both), in.whole));
        }
    }
    g.tape()->accumulate(g, q, from_chunks(g, dq, layout));
    g.tape()->accumulate(g, k, from_chunks(g, dk, layout));
    g.tape()->accumulate(g, beta, from_columns(g, as_column(g, d_beta), layout));
    if (g.tape()->requires_grad(decay)) {
        // decay_j is in every G_i from i = j on: sums from the end.
        Node column = as_column(g, dG);
        Node d_decay =
            ggml_add(ctx, ggml_sub(ctx, column, ggml_cumsum(ctx, column)),
                     ggml_repeat_4d(ctx, plus(ggml_sum_rows(ctx, column), d_tau), kChunk, 1, layout.batch(), 1));
        g.tape()->accumulate(g, decay, from_columns(g, d_decay, layout));
    }
}

} // namespace

DeltaResult chunked_delta(Graph & g, Node q, Node k, Node v, Node decay, Node beta, Node state, int64_t head_dim,
                          int64_t n_heads) {
    ggml_context *    ctx = g.ctx();
    const int64_t     n   = v->ne[1];
    const ChunkLayout layout{ head_dim, n_heads, n, (n + kChunk - 1) / kChunk };
    const IntraChunk  in    = intra_chunk(g, q, k, v, decay, beta, layout);
    Node              out_k = transpose_copy(g, in.left_k); // [c, S, batch]

    auto              inter = std::make_shared<InterChunk>();
    Node              A     = state ? ggml_reshape_3d(ctx, state, layout.S, layout.S, layout.H) : nullptr;
    std::vector<Node> Y;
    for (int64_t i = 0; i < layout.n_chunks; i++) {
        ctx    = g.ctx();
        Node X = at(g, in.v, i, layout);
        X      = A ? ggml_sub(ctx, X, matrix_product(g, at(g, in.decayed_k, i, layout), A)) : X; // [c, S, H]
        Node R = ggml_mul(ctx, X, at(g, in.beta, i, layout));
        Node W = ggml_add(ctx, R, matrix_product(g, at(g, in.T, i, layout), R));
        Node y = matrix_product(g, at(g, in.P, i, layout), W);
        Node B = matrix_product(g, at(g, out_k, i, layout), W); // [S keys, S values, H]
        inter->X.push_back(X);
        inter->W.push_back(W);
        inter->A.push_back(A);
        Y.push_back(A ? ggml_add(ctx, y, matrix_product(g, at(g, in.decayed_q, i, layout), A)) : y);
        A = A ? ggml_add(ctx, B, ggml_mul(ctx, A, at(g, in.whole, i, layout))) : B;
        g.expand(Y.back());
        g.expand(A);
    }
    Node   y          = from_chunks(g, transpose_copy(g, join(g, Y)), layout);
    Node   end        = ggml_reshape_2d(ctx, A, layout.S * layout.S * layout.H, 1);
    Tape * tape       = g.tape();
    bool   needs_grad = false;
    for (Node input : { q, k, v, decay, beta, state }) {
        needs_grad = needs_grad || tape->requires_grad(input);
    }
    if (needs_grad) {
        tape->record(std::vector<Node>{ y, end }, [=](Graph & graph, const std::vector<Node> & gradients) {
            chunked_delta_backward(graph, in, *inter, gradients[0], gradients[1], q, k, v, decay, beta, state);
        });
    }
    return { y, end };
}

} // namespace penelope
