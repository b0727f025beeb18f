// Hyperparameters of a backbone, read from GGUF and validated once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace penelope {

class GgufReader;
class GgufWriter;

// Limits: far above any existing model, and low enough that sizes computed from them cannot overflow.
constexpr uint32_t kMaxLayers    = 4096;
constexpr uint32_t kMaxWidth     = 1u << 20;
constexpr uint32_t kMaxHeadWidth = 4096;
constexpr uint32_t kMaxContext   = 1u << 30;
constexpr uint32_t kMaxTokens    = 1u << 24;

// Base of the hyperparameters that only one architecture has; defined and read in its folder.
struct ArchConfig {
    virtual ~ArchConfig() = default;
};

struct ModelConfig {
    std::string architecture;         // "llama"
    std::string name;                 // general.name; may be empty
    int         n_layer          = 0; // layers that run
    int         n_skipped_layers = 0; // further blocks in the file that do not (multi-token prediction)
    int         n_embd           = 0;
    int         n_ff             = 0;
    int         n_head           = 0;
    int         n_head_kv        = 0;
    int         head_dim         = 0;
    int         rope_dims        = 0; // leading features of a head that RoPE rotates; 0: all
    int         n_vocab          = 0;
    int         n_ctx_train      = 0;
    float       rms_eps          = 1e-5f;
    float       rope_base        = 10000.0f;
    bool        tied             = true;  // the output head is the embedding
    bool        has_head_dim     = false; // head_dim is given, not n_embd / n_head

    std::shared_ptr<const ArchConfig> arch_config; // null for most architectures

    int n_embd_q() const { return head_dim * n_head; }
    int n_embd_kv() const { return head_dim * n_head_kv; }
    int n_rope() const { return rope_dims ? rope_dims : head_dim; }
};

// Throws Error(unsupported) for an unknown architecture (with the supported ones) and Error(format) for values that are
// missing, contradictory or out of range.
ModelConfig read_model_config(const GgufReader & file);

// What is invalid about the values, or ""; limits are checked elsewhere.
std::string config_error(const ModelConfig & config);

// Writes general.architecture and every key read_model_config() reads, except general.name.
void write_model_config(GgufWriter & writer, const ModelConfig & config);

// Reads an integer key in [1, max]; throws Error(format) with file, key and value otherwise.
int get_bounded(const GgufReader & file, const std::string & key, uint32_t max);
// Throws Error(format) "FILE: what" unless ok.
void require(bool ok, const GgufReader & file, const std::string & what);

} // namespace penelope
