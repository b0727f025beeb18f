// The hyper-parameters of a Hugging Face Llama checkpoint, from its config.json.
//
// Input: the parsed config.json. Output: HfLlamaConfig with every default resolved. A field that would change the arithmetic
// in a way the GGUF cannot express is an Error, never ignored.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;
class GgufWriter;

// Frequency scaling as introduced with Llama 3.1: long wavelengths are stretched by `factor`.
struct Llama3RopeScaling {
    double factor;
    double low_freq_factor;
    double high_freq_factor;
    double original_context;
};

struct HfLlamaConfig {
    uint32_t n_layer        = 0;
    uint32_t n_context      = 0;
    uint32_t n_embd         = 0;
    uint32_t n_ff           = 0;
    uint32_t n_head         = 0;
    uint32_t n_head_kv      = 0;
    uint32_t head_dim       = 0;
    bool     head_dim_given = false; // only then do key_length and value_length go into the file
    float    rms_epsilon    = 0;
    double   rope_theta     = 0;
    uint32_t n_vocab        = 0;
    bool     tied           = false; // the head is the embedding

    std::optional<Llama3RopeScaling> rope_scaling;

    std::optional<int32_t> bos_token_id;
    std::vector<int32_t>   eos_token_ids;
    std::optional<int32_t> pad_token_id;
};

// `path` only serves error messages.
HfLlamaConfig parse_hf_llama_config(const nlohmann::json & config, const std::string & path);

// From a backbone GGUF, without rope scaling and token ids. Throws for other architectures.
HfLlamaConfig read_gguf_llama_config(const GgufReader & gguf);

// The inverse of parse_hf_llama_config, for going back to PyTorch.
nlohmann::ordered_json hf_llama_config_json(const HfLlamaConfig & config);

// general.architecture and llama.* keys.
void write_llama_keys(GgufWriter & writer, const HfLlamaConfig & config);

// Divisors of the rotary angles, one per frequency (head_dim / 2), as stored in rope_freqs.weight.
std::vector<float> llama3_rope_factors(const Llama3RopeScaling & scaling, double theta, uint32_t head_dim);

} // namespace penelope
