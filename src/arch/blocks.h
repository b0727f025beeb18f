// Building blocks of decoder layers shared by several architectures: attention, feed-forward, the dense layer.
#pragma once

#include "arch/layer.h"

namespace penelope {

// The output rows of x [n_embd, n_rows]. The rest of the layer computes only these.
Node select_output_rows(Graph & g, Node x, const OutputRows & output_rows);

// Softmax attention over the KV cache, with RoPE. q_norm and k_norm are RMS norms per head (Qwen3); both may be null.
struct AttentionWeights {
    Linear q, k, v, o;
    Node   q_norm = nullptr, k_norm = nullptr; // [head_dim]
};
// Writes the keys and values of normed [n_embd, n_rows] to the KV cache.
void write_keys_and_values(Graph & g, const LayerCall & call, const AttentionWeights & w, Node normed);
// The same from projected keys and values [n_embd_kv, n_rows], before k_norm and RoPE.
void write_keys_and_values(Graph & g, const LayerCall & call, const AttentionWeights & w, Node k, Node v);
// Attention output [head_dim * n_head, n] for queries q [head_dim * n_head, n] before q_norm and RoPE.
Node attend(Graph & g, const LayerCall & call, const AttentionWeights & w, Node q);

// x + what a block makes of it, times the scale the model gives to it.
Node add_residual(Graph & g, const ModelConfig & config, Node x, Node block);

// W_down(silu(W_gate x) * W_up x).
struct FeedForwardWeights {
    Linear gate, up, down;
};
Node feed_forward(Graph & g, const FeedForwardWeights & w, Node x);
void list_feed_forward_tensors(FeedForwardWeights & w, const ModelConfig & config, TensorTable & table);

// The decoder layer of Llama, Qwen2 and Qwen3, which differ in their tensors only:
// x += W_o attention(W_q n, W_k n, W_v n), n = rmsnorm(x);  x += feed_forward(rmsnorm(x)).
struct DenseWeights {
    Node               attn_norm = nullptr; // [n_embd]
    AttentionWeights   attention;
    Node               ffn_norm = nullptr; // [n_embd]
    FeedForwardWeights ffn;
};
Node dense_layer(Graph & g, const LayerCall & call, const DenseWeights & w, Node x);

} // namespace penelope
