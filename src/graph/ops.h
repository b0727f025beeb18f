// Differentiable operations, the building blocks of all models. Each function creates its forward nodes and, when the
// graph has a tape and an input requires a gradient, records its backward. Forward and backward are side by side in
// ops_*.cpp.
//
// All nodes are matrices [features, rows] in ggml order unless a comment says otherwise; activations are F32.
#pragma once

#include "graph/dropout.h"
#include "graph/graph.h"

#include <vector>

namespace penelope {

// --- ops_elementwise.cpp

Node add(Graph & g, Node a, Node b);        // b: like a, or one row [features] for all rows
Node sub(Graph & g, Node a, Node b);        // same shape
Node mul(Graph & g, Node a, Node b);        // b: like a, or one row [features] for all rows
Node mul_scalar(Graph & g, Node a, Node b); // b: a single value [1]
Node scale(Graph & g, Node a, float factor, float offset = 0.0f);
Node tanh(Graph & g, Node a);
Node sigmoid(Graph & g, Node a);
Node silu(Graph & g, Node a);
Node gelu(Graph & g, Node a);               // exact, x Phi(x); ops_gelu.cpp
Node gelu_tanh(Graph & g, Node a);          // its approximation with a hyperbolic tangent, as in Gemma; ops_gelu.cpp
Node swiglu(Graph & g, Node gate, Node up); // silu(gate) * up

Node dropout(Graph & g, Node x, const Dropout & source);
// The mask of an earlier dropout applied again; records no gradient.
Node dropout_again(Graph & g, Node x, const Dropout & source, const Draw & draw);

// --- ops_norm.cpp

constexpr float kLayerNormEps = 1e-5f; // PyTorch's default, used by the modules of all methods

Node rms_norm(Graph & g, Node x, Node weight, float eps); // weight may be null
Node layer_norm(Graph & g, Node x, Node weight, Node bias, float eps = kLayerNormEps);

// --- ops_linear.cpp

// LoRA: y += scale * B (A x), or y += scale * B (A dropout(x)) in training. Pairs that read the same x share the mask.
struct LoraPair {
    Node            a       = nullptr; // [n_in, rank]
    Node            b       = nullptr; // [rank, n_out]
    float           scale   = 1.0f;
    const Dropout * dropout = nullptr;
};

struct Linear {
    Node     weight     = nullptr; // [n_in, n_out], any type
    Node     bias       = nullptr; // [n_out] F32, may be null
    Node     transposed = nullptr; // [n_out, n_in] for the backward of a frozen weight; null in inference
    LoraPair lora;
};

Node linear(Graph & g, const Linear & layer, Node x); // [n_in, rows] -> [n_out, rows]
Node embed(Graph & g, Node table, Node ids);          // table [d, n_vocab], ids I32 [rows] -> [d, rows]

// --- ops_attention.cpp

struct RopeParams {
    int   n_dims       = 0; // leading features of a head that are rotated; 0: none
    int   mode         = 0; // GGML_ROPE_TYPE_*
    float freq_base    = 10000.0f;
    Node  factors      = nullptr; // [n_dims/2] F32 frequency divisors, may be null
    int   n_ctx_orig   = 0;
    Node  long_factors = nullptr; // instead of `factors` in a context longer than n_ctx_orig; may be null
    float magnitude    = 1.0f;    // factor of sine and cosine
    float freq_scale   = 1.0f;    // factor of positions
};
// Rotary position embedding of each head of x [head_dim * n_head, rows]; positions I32 [rows].
Node rope(Graph & g, Node x, Node positions, int head_dim, const RopeParams & params);

struct AttentionShape {
    int   head_dim;
    int   n_head;
    int   n_head_kv; // grouped-query attention: query head h reads KV head h / (n_head / n_head_kv)
    float scale;
};
// q [head_dim * n_head, n_q], k and v [head_dim * n_head_kv, n_kv] (rows may be strided), mask [n_kv, n_q] F16 of 0 and
// -inf, or null when every query sees every row -> [head_dim * n_head, n_q]. Flash attention without a tape where the
// device has it, otherwise an explicit softmax.
Node attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape);
// The same for n sequences in one node: q [head_dim * n_head, n_q, n], k and v [head_dim * n_head_kv, n_kv, n],
// mask [n_kv, n_q, 1, n] -> shape of q. Inference only.
Node batched_attention(Graph & g, Node q, Node k, Node v, Node mask, const AttentionShape & shape);

// --- ops_rows.cpp

Node concat_rows(Graph & g, const std::vector<Node> & parts);         // same features
Node pad_rows(Graph & g, Node x, int64_t rows);                       // zeros after the last row
Node concat_features(Graph & g, Node a, Node b);                      // same rows
Node slice_rows(Graph & g, Node x, int64_t first, int64_t count);     // a view
Node slice_features(Graph & g, Node x, int64_t first, int64_t count); // contiguous copy
Node repeat_rows(Graph & g, Node x, int64_t times);                   // [d, r] -> [d, r * times], block after block
Node mean_rows(Graph & g, Node x, int64_t group);                     // [d, group * n] -> [d, n]
Node gather_rows(Graph & g, Node x, Node index);                      // index I32 [n], each row of x at most once
Node reshape_rows(Graph & g, Node x, int64_t features, int64_t rows);

} // namespace penelope
