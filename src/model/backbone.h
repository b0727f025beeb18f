// A decoder-only Transformer taken apart: embedding, any interval of layers on any rows, head.
//
// A Backbone is a plain set of nodes; whoever loaded or trains the weights owns their memory. The builders below serve
// inference and training alike.
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
    bool recompute = false; // training: layers are computed again in the backward instead of kept

    // Spread over several devices: the one of each layer, of the modules, and the rotation with its tensors on each of them.
    // Empty: all on one.
    std::vector<int>        layer_devices;
    int                     latent_device_id = 0;
    std::vector<RopeParams> ropes;

    int                device_of(int il) const { return layer_devices.empty() ? 0 : layer_devices[size_t(il)]; }
    const RopeParams & rope_at(int il) const { return ropes.empty() ? rope : ropes[size_t(device_of(il))]; }
};

// The layers of this architecture and shape, without weights.
Backbone make_backbone(const ModelConfig & config);

// Every tensor of the model, in the order of a file: ends and layers. `node` and `linear` point into the model.
std::vector<TensorSpec> tensors_of(Backbone & model);
// The same for those who only want names and shapes; they point nowhere.
std::vector<TensorSpec> tensors_of(const ModelConfig & config);

// Floats of recurrent state per sequence, and bytes of keys and values per row.
int64_t n_recurrent(const Backbone & model);
size_t  kv_bytes_per_row(const Backbone & model, ggml_type type);

// F_[first:last): the residual stream x [n_embd, n_rows] through layers first..last-1. Keys and values go to and come from
// `kv`. With `output_rows`, the last layer computes only keys and values at the other rows, and the result has the kept rows
// alone (null when none are kept). Each layer is counted as one sequential application.
Node run_layers(Graph & g, const Backbone & model, int first, int last, Node x, const RowLayout & rows,
                SequenceState & kv, const OutputRows * output_rows = nullptr);

Node final_norm(Graph & g, const Backbone & model, Node x);
// Final norm and head: [n_embd, n] -> [n_vocab, n].
Node logits(Graph & g, const Backbone & model, Node x);

} // namespace penelope
