// The numbers that shape a backbone, read and checked once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace penelope {

class GgufReader;
class GgufWriter;

// Far above any model there is, far below what would overflow a size computed from them.
constexpr uint32_t kMaxLayers    = 4096;
constexpr uint32_t kMaxWidth     = 1u << 20;
constexpr uint32_t kMaxHeadWidth = 4096;
constexpr uint32_t kMaxContext   = 1u << 30;
constexpr uint32_t kMaxTokens    = 1u << 24;

// Numbers that only one architecture has; its folder derives from this and nobody else looks inside.
struct ArchConfig {
    virtual ~ArchConfig() = default;
};

struct ModelConfig {
    std::string architecture;         // "llama"
    std::string name;                 // general.name, may be empty
    int         n_layer          = 0; // that run
    int         n_skipped_layers = 0; // blocks of the file after them that do not
    int         n_embd           = 0;
    int         n_ff             = 0;
    int         n_head           = 0;
    int         n_head_kv        = 0;
    int         head_dim         = 0;
    int         rope_dims        = 0; // leading features of a head that turn; 0: all of them
    int         n_vocab          = 0;
    int         n_ctx_train      = 0;
    float       rms_eps          = 1e-5f;
    float       rope_base        = 10000.0f;
    bool        tied             = true;  // the head is the embedding
    bool        has_head_dim     = false; // head_dim was given instead of following from n_embd and n_head

    std::shared_ptr<const ArchConfig> arch_config; // null for most

    int n_embd_q() const { return head_dim * n_head; }
    int n_embd_kv() const { return head_dim * n_head_kv; }
    int n_rope() const { return rope_dims ? rope_dims : head_dim; }
};

// Throws Error(unsupported) for a foreign architecture (naming the supported ones) and Error(format) for numbers that are
// missing, contradict each other or cannot be.
ModelConfig read_model_config(const GgufReader & file);

// In what way numbers within those limits cannot be, or contradict each other; empty when all is well.
std::string config_error(const ModelConfig & config);

// general.architecture and all keys read_model_config() reads but the name.
void write_model_config(GgufWriter & writer, const ModelConfig & config);

// For architectures that read more keys: a number from 1 to max, else Error(format) naming file and key.
int get_bounded(const GgufReader & file, const std::string & key, uint32_t max);
// Error(format) "FILE: what" unless ok.
void require(bool ok, const GgufReader & file, const std::string & what);

} // namespace penelope
