// The description of a model architecture. Each architecture has a folder with its hyperparameters, layers and tensor
// table, and one line in list.inc. No other code knows it by name.
#pragma once

#include "arch/layer.h"
#include "base/json.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;
class GgufWriter;

// A published model size, for benchmarks with random weights.
struct KnownShape {
    const char * name;
    ModelConfig  config;
    int          start; // default interval of latent steps: layers [start, n_layer)
};

struct Architecture {
    const char *              name;     // general.architecture
    std::vector<const char *> hf_types; // model_type in config.json; export writes the first
    const char *              hf_class; // architectures[0] in config.json

    std::unique_ptr<Layer> (*make_layer)(const ModelConfig & config, int il);

    int            rope_mode      = 0; // GGML_ROPE_TYPE_*
    bool           partial_rotary = false;
    bool           scaled_rope    = false; // may have rope_freqs.weight (Llama 3 RoPE scaling)
    bool           long_rope      = false; // may have rope_factors_long.weight and rope_factors_short.weight (LongRoPE)
    bool           linear_rope    = false; // may divide positions by a factor
    ValueTransform norms          = ValueTransform::same;

    // Tensor name prefixes of Hugging Face checkpoints besides "model.", and prefixes of tensors that are ignored
    // (vision).
    std::vector<const char *> hf_prefixes = {};
    std::vector<const char *> hf_skipped  = {};

    // What config.json says about the feed-forward network, and about a tied head if it says nothing.
    const char * hf_activation_key = "hidden_act";
    const char * hf_activation     = "silu";
    bool         hf_tied           = false;

    // Read and write hyperparameters that only this architecture has; may be null. read_hf throws for unsupported
    // features.
    void (*read_gguf)(const GgufReader & file, ModelConfig & config)                   = nullptr;
    void (*write_gguf)(GgufWriter & writer, const ModelConfig & config)                = nullptr;
    void (*read_hf)(const Json & json, const std::string & path, ModelConfig & config) = nullptr;
    void (*write_hf)(const ModelConfig & config, OrderedJson & json)                   = nullptr;
    // One line for `penelope info` about the layers; may be null.
    std::string (*describe)(const ModelConfig & config) = nullptr;

    std::vector<KnownShape> shapes = {};
};

const std::vector<const Architecture *> & architectures();
std::string                               architecture_names(); // "llama, qwen3"

// Null when unknown.
const Architecture * find_architecture(const std::string & name);
const Architecture * find_architecture_of_hf(const std::string & model_type);

// Throw Error(unsupported) with the list of supported architectures.
const Architecture & get_architecture(const GgufReader & file);
const Architecture & get_architecture(const ModelConfig & config);

} // namespace penelope
