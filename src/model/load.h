// Loads a backbone from a GGUF file into a WeightStore, or creates one with random weights.
#pragma once

#include "model/backbone.h"
#include "model/lora.h"
#include "model/weights.h"

#include <memory>

namespace penelope {

// Bytes of the layers: of a file, and of a model with these hyperparameters.
LayerSizes layer_sizes(const GgufReader & file);
LayerSizes layer_sizes(const ModelConfig & config, ggml_type type);

// Adds all backbone tensors of the file and the LoRA pairs to the store; they have data after store.load(). Throws
// Error for a tensor that is missing, has the wrong shape or is unknown (unless allow_extra_tensors), and for a LoRA
// pair without a matching weight.
Backbone load_backbone(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStore & store,
                       bool allow_extra_tensors = false);
// The same for a model split over devices.
Backbone load_backbone(std::shared_ptr<const GgufReader> file, const HostLora & lora, WeightStores & stores,
                       bool allow_extra_tensors = false);

// A backbone with random weights, for benchmarks. type: of the matrices.
Backbone random_backbone(const ModelConfig & config, ggml_type type, uint64_t seed, WeightStore & store);
Backbone random_backbone(const ModelConfig & config, ggml_type type, uint64_t seed, WeightStores & stores);

// Adds a random LoRA pair of this rank to every linear layer.
void add_random_lora(Backbone & model, int rank, uint64_t seed, WeightStores & stores);

} // namespace penelope
