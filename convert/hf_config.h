// The hyper-parameters of a Hugging Face checkpoint, from its config.json.
//
// Input: the parsed config.json. Output: HfConfig with every default resolved. A field that would change the arithmetic
// in a way the GGUF cannot express is an Error, never ignored.
#pragma once

#include "arch/architecture.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

// Frequency scaling as introduced with Llama 3.1: long wavelengths are stretched by `factor`.
struct Llama3RopeScaling {
    double factor;
    double low_freq_factor;
    double high_freq_factor;
    double original_context;
};

struct HfConfig {
    ModelConfig model;

    std::optional<Llama3RopeScaling> rope_scaling;
    // Values of the tensors with TensorRole::constant, by their name in GGUF.
    std::map<std::string, std::vector<float>> constants;

    std::optional<int32_t> bos_token_id;
    std::vector<int32_t>   eos_token_ids;
    std::optional<int32_t> pad_token_id;
};

// `path` only serves error messages. Throws Error(unsupported) for model types nobody here knows, naming the known
// ones.
HfConfig parse_hf_config(const Json & config, const std::string & path);

// The inverse, for going back to PyTorch.
OrderedJson hf_config_json(const HfConfig & config);

// Divisors of the rotary angles, one per frequency (n_dims / 2), as stored in rope_freqs.weight.
std::vector<float> llama3_rope_factors(const Llama3RopeScaling & scaling, double theta, int n_dims);

} // namespace penelope
