// From a GGUF file to a Backbone whose weights lie in a WeightStore.
#pragma once

#include "model/backbone.h"
#include "model/lora.h"
#include "model/weights.h"

#include <memory>

namespace penelope {

// What the layers of a file's backbone weigh, and those of a backbone of this shape.
LayerSizes layer_sizes(const GgufReader & file);
LayerSizes layer_sizes(const ModelConfig & config, ggml_type type);

// Adds every tensor of the file's backbone, and the pairs of `lora`, to the store; the nodes have data after store.load().
// Throws Error for a missing or misshapen tensor, a tensor nobody asked for (unless allow_extra_tensors), and a pair that names no
// weight or does not fit it.
Backbone load_backbone(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStore & store,
                       bool allow_extra_tensors = false);
// The same with every layer on its device.
Backbone load_backbone(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStores & stores,
                       bool allow_extra_tensors = false);

// A backbone of this shape with random weights, for measuring without a file. `type` for matrices.
Backbone random_backbone(const ModelConfig & config, ggml_type type, uint64_t seed, WeightStore & store);
Backbone random_backbone(const ModelConfig & config, ggml_type type, uint64_t seed, WeightStores & stores);

// Gives every linear layer of the decoder a random pair of this rank.
void add_random_lora(Backbone & model, int rank, uint64_t seed, WeightStores & stores);

} // namespace penelope
