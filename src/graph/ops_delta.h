// Operations of a gated delta net (Qwen3.5): a short causal convolution and the delta rule. Inference uses ggml's fused
// kernels; with a tape they are built from operations with gradients.
#pragma once

#include "graph/graph.h"

namespace penelope {

Node softplus(Graph & g, Node a);

// Depthwise causal convolution over the rows of x [C, n] with `weight` [width, C]; the last tap multiplies the current
// row. tail: the last width - 1 rows of the previous call, flat; null: zeros. The new tail ends at the last row, or at
// row n_valid - 1 when n_valid (F32 [1]) is given: rows after that are padding (inference only).
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
