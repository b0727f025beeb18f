// What the rest of the program knows of an architecture. Each has a folder with its numbers, its layers and the table of their
// tensors, and one line in list.inc; nothing else names it.
#pragma once

#include "arch/layer.h"
#include "base/json.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;
class GgufWriter;

// A published size, for measuring without its file.
struct KnownShape {
    const char * name;
    ModelConfig  config;
    int          start; // of the interval [start, n_layer) that refinements repeat
};

struct Architecture {
    const char *              name;     // general.architecture
    std::vector<const char *> hf_types; // model_type of a config.json; the first is written
    const char *              hf_class; // its architectures[0]

    std::unique_ptr<Layer> (*make_layer)(const ModelConfig & config, int il);

    int            rope_mode      = 0; // GGML_ROPE_TYPE_*
    bool           partial_rotary = false;
    bool           scaled_rope    = false; // may have rope_freqs.weight, Llama 3's scaling
    ValueTransform norms          = ValueTransform::same;

    // Beside "model.": prefixes the tensors of a checkpoint may have instead, and those of parts that are left out.
    std::vector<const char *> hf_prefixes = {};
    std::vector<const char *> hf_skipped  = {};

    // Keys beyond those every decoder has; any may be null. read_hf also refuses what the graph cannot express.
    void (*read_gguf)(const GgufReader & file, ModelConfig & config)                   = nullptr;
    void (*write_gguf)(GgufWriter & writer, const ModelConfig & config)                = nullptr;
    void (*read_hf)(const Json & json, const std::string & path, ModelConfig & config) = nullptr;
    void (*write_hf)(const ModelConfig & config, OrderedJson & json)                   = nullptr;
    // One line for `info` on what is special about the layers; null: nothing.
    std::string (*describe)(const ModelConfig & config) = nullptr;

    std::vector<KnownShape> shapes = {};
};

const std::vector<const Architecture *> & architectures();
std::string                               architecture_names(); // "llama, qwen3"

// Null when there is none.
const Architecture * find_architecture(const std::string & name);
const Architecture * find_architecture_of_hf(const std::string & model_type);

// Throw Error(unsupported) naming the supported ones.
const Architecture & get_architecture(const GgufReader & file);
const Architecture & get_architecture(const ModelConfig & config);

} // namespace penelope
