// A decoder-only Transformer in parts: embedding, any range of layers on any rows, output head.
//
// A Backbone only holds tensor pointers; a WeightStore or the trainer owns the memory. Inference and training build
// their graphs with the same functions.
#pragma once

#include "arch/architecture.h"

#include <memory>
#include <vector>

namespace penelope {

struct Backbone {
    ModelConfig                         config;
    Node                                embedding = nullptr; // [n_embd, n_vocab]
    std::vector<std::unique_ptr<Layer>> layers;
    Node                                output_norm = nullptr; // [n_embd]
    Linear                              head;                  // [n_embd, n_vocab]
    RopeParams                          rope;
    bool recompute = false; // training: activation checkpointing, one checkpoint per layer

    // For a model split over several devices: the device of each layer, of the latent modules, and the RoPE tensors on
    // each device. Empty: one device.
    std::vector<int>        layer_devices;
    int                     latent_device_id = 0;
    std::vector<RopeParams> ropes;

    int device_of(int il) const { return layer_devices.empty() ? 0 : layer_devices[size_t(il)]; }
    // The rotation of a layer, in a context of n_ctx tokens.
    RopeParams rope_at(int il, int n_ctx) const;
};

// A backbone with these hyperparameters and no weights.
Backbone make_backbone(const ModelConfig & config);

// All tensors of the model in file order. `node` and `linear` point into the model.
std::vector<TensorSpec> tensors_of(Backbone & model);
// The same with names and shapes only; the pointers are null.
std::vector<TensorSpec> tensors_of(const ModelConfig & config);

// Floats of recurrent state per sequence, and KV cache bytes per token.
int64_t n_recurrent(const Backbone & model);
size_t  kv_bytes_per_row(const Backbone & model, ggml_type type);

// F_[first:last): runs the residual stream x [n_embd, n_rows] through layers first .. last - 1, with `kv` as KV cache
// and recurrent state. With `output_rows` the result has only those rows (null when there are none); at the other rows
// the last layer computes keys and values only. Each layer counts as one sequential layer application.
Node run_layers(Graph & g, const Backbone & model, int first, int last, Node x, const RowLayout & rows,
                SequenceState & kv, const OutputRows * output_rows = nullptr);

// ids I32 [n] -> rows of the residual stream [n_embd, n]. Latent rows live in the same space: what enters as a row, not
// as a token, is not scaled.
Node embed_tokens(Graph & g, const Backbone & model, Node ids);

Node final_norm(Graph & g, const Backbone & model, Node x);
// What the head multiplies: the final norm, scaled as the logits are.
Node head_input(Graph & g, const Backbone & model, Node x);
// Final norm and head: [n_embd, n] -> [n_vocab, n].
Node logits(Graph & g, const Backbone & model, Node x);

} // namespace penelope
