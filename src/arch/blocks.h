// Parts of a layer that several architectures share.
#pragma once

#include "arch/layer.h"

namespace penelope {

// What a layer still has to compute at the rows that are kept; all that follows in the layer works on these.
Node select_output_rows(Graph & g, Node x, const OutputRows & output_rows);

// Softmax attention over keys and values of the sequences, with rotary positions. q_norm and k_norm scale each head after an
// RMS norm; both may be null.
struct AttentionWeights {
    Linear q, k, v, o;
    Node   q_norm = nullptr, k_norm = nullptr; // [head_dim]
};
// Leaves keys and values of normed [n_embd, n_rows] in the state.
void write_keys_and_values(Graph & g, const LayerCall & call, const AttentionWeights & w, Node normed);
// The mix of values [head_dim * n_head, n_cached] for queries [head_dim * n_head, n_cached] before norm and rotation.
Node attend(Graph & g, const LayerCall & call, const AttentionWeights & w, Node q);

// W_down(silu(W_gate x) * W_up x).
struct FeedForwardWeights {
    Linear gate, up, down;
};
Node feed_forward(Graph & g, const FeedForwardWeights & w, Node x);
void list_feed_forward_tensors(FeedForwardWeights & w, const ModelConfig & config, TensorTable & table);

// The whole of a layer that Llama, Qwen2 and Qwen3 share, each with its own tensors:
// x += W_o attention(W_q n, W_k n, W_v n), n = rmsnorm(x);  x += feed_forward(rmsnorm(x)).
struct DenseWeights {
    Node               attn_norm = nullptr; // [n_embd]
    AttentionWeights   attention;
    Node               ffn_norm = nullptr; // [n_embd]
    FeedForwardWeights ffn;
};
Node dense_layer(Graph & g, const LayerCall & call, const DenseWeights & w, Node x);

} // namespace penelope
