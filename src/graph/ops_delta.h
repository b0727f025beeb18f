// The operations of a gated delta net: a short causal convolution and the delta rule itself. Fused kernels without a tape; with
// one, forms whose gradients can be built from public operations.
#pragma once

#include "graph/graph.h"

namespace penelope {

Node softplus(Graph & g, Node a);

// Each feature of x [C, n] convolved over the rows with its own kernel of `weight` [width, C], whose last tap meets the current
// row. tail: what the width - 1 rows before left behind, flat; null: zeros. The new tail belongs to the last row, or,
// with n_valid F32 [1], to row n_valid - 1: those after it are padding (without a tape only).
struct Convolved {
    Node y;    // [C, n]
    Node tail; // flat [C * (width - 1)]
};
Convolved causal_conv(Graph & g, Node x, Node weight, Node tail, Node n_valid = nullptr);

// For each value head, with state A (keys by values) and row t:
//   A <- exp(decay_t) A;  delta = beta_t (v_t - A^T k_t);  A <- A + k_t delta^T;  y_t = A^T q_t / sqrt(S).
// Value head h reads key head h mod n_key_heads.
struct DeltaShape {
    int head_dim;    // S, of keys and values alike
    int n_key_heads; // of q and k
    int n_value_heads;
};
// q, k [S * n_key_heads, n]; v [S * n_value_heads, n]; decay (at most 0) and beta [n_value_heads, n]; state flat
// [S * S * n_value_heads], keys fastest; null: zeros.
struct DeltaResult {
    Node y;     // [S * n_value_heads, n]
    Node state; // flat
};
DeltaResult gated_delta(Graph & g, Node q, Node k, Node v, Node decay, Node beta, Node state, const DeltaShape & shape);

} // namespace penelope
