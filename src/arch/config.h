// Hyperparameters of a backbone, read from GGUF and validated once.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

    // Factors that some architectures have.
    float embedding_scale = 1.0f; // of token embeddings where they enter the residual stream
    float residual_scale  = 1.0f; // of what a block adds to the residual stream
    float attention_scale = 0.0f; // of the scores; 0: 1 / sqrt(head_dim)
    float logit_scale     = 1.0f; // logits are divided by it

    // Rotation for long contexts: positions divided by rope_factor (not in layers with a window), sine and cosine times
    // rope_magnitude, and another set of frequency factors in a context longer than n_ctx_short (0: there is one set).
    float rope_factor    = 1.0f;
    float rope_magnitude = 1.0f;
    int   n_ctx_short    = 0;

    // Layers that differ in their attention. From position p a layer with a window sees positions p - window + 1 .. p.
    int               window           = 0;
    float             window_rope_base = 0.0f; // base of the rotation in layers with a window; 0: rope_base
    std::vector<bool> is_windowed      = {};   // per layer; empty: none is
    std::vector<bool> is_unrotated     = {};   // per layer, no RoPE; empty: none is

    std::shared_ptr<const ArchConfig> arch_config; // null for most architectures

    int n_embd_q() const { return head_dim * n_head; }
    int n_embd_kv() const { return head_dim * n_head_kv; }
    int n_rope() const { return rope_dims ? rope_dims : head_dim; }
    // Factor of the attention scores.
    float score_scale() const { return attention_scale > 0.0f ? attention_scale : 1.0f / std::sqrt(float(head_dim)); }
    // Window of a layer; 0: it sees everything before it.
    int  window_of(int il) const { return !is_windowed.empty() && is_windowed[size_t(il)] ? window : 0; }
    bool has_rope(int il) const { return is_unrotated.empty() || !is_unrotated[size_t(il)]; }
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
// Reads a factor in (1e-6, 1e6), `fallback` if the file has none; throws Error(format) otherwise.
float find_factor(const GgufReader & file, const std::string & key, float fallback);
// Throws Error(format) "FILE: what" unless ok.
void require(bool ok, const GgufReader & file, const std::string & what);

} // namespace penelope
