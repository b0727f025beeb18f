// The Penelope sidecar: a GGUF file with the latent modules, LoRA pairs, and the metadata to check that they fit
// the backbone.
//
// Three kinds of file carry these keys and tensors:
//   sidecar   general.type = "adapter", adapter.type = "penelope"; LoRA pairs as in a llama.cpp LoRA,
//             modules named as in module_tensor_shapes().
//   bundle    general.type = "penelope-bundle": all keys and tensors of a backbone and of one sidecar
//             in one file.
//   neither   any other GGUF file.
// Reader, writer, trainer and inference share the table of tensors below.
#pragma once

#include "sidecar/weight_fingerprint.h"
#include "text/prompt_format.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;
class GgufWriter;

// What a sidecar remembers of its base, and what a base file says of itself.
struct BaseInfo {
    std::string       name; // for people, never compared
    std::string       architecture;
    uint32_t          block_count      = 0;
    uint32_t          embedding_length = 0;
    uint32_t          vocab_size       = 0;
    std::string       tokens_sha256; // of the vocabulary, see text/tokenizer_data.h; may be empty in a sidecar
    WeightFingerprint fingerprint;   // of the weights; may be empty in a sidecar
    std::string       repo, file;    // where it was downloaded from: "USER/REPO" and its file there; empty if unknown
};

struct SidecarConfig {
    uint32_t    version          = 1;
    std::string method           = "penelope"; // an entry of sidecar/method_format.h
    uint32_t    interval_start   = 0;          // s; layers [s, e) are repeated
    uint32_t    interval_end     = 0;          // e
    uint32_t    n_memory         = 8;          // m
    uint32_t    n_readout        = 2;          // q
    uint32_t    k_max            = 8;
    uint32_t    k_default        = 6;
    uint32_t    time_width       = 1024;  // h
    uint32_t    adapter_width    = 256;   // b
    std::string transition       = "gru"; // or "overwrite"
    uint32_t    projection_width = 2048;  // p, between a thought of CODI and the next
    float       halt_cosine      = 0;     // cosine of two readouts from which on further steps are spared; 0: unknown
    std::string prompt_template  = "{question}\n";
    std::string answer_prefix    = "### ";
    std::string task;
    std::string match;          // see Wording
    float       lora_alpha = 0; // 0: the file holds no LoRA pairs
    // Whether the LoRA pairs alone write visible steps, as training found out; unknown in files of other makers.
    std::optional<bool> visible_steps;
    BaseInfo            base;
    std::string         train_config; // JSON, may be empty
    std::string         eval_results; // JSON, may be empty
};

// Which fields a method has: sidecar/method_format.h. Throws Error(format) naming the field when a value is impossible
// by itself or against the base facts in the same config.
void check_sidecar_config(const SidecarConfig & config, const std::string & origin);

bool is_sidecar(const GgufReader & file);
bool is_bundle(const GgufReader & file);

// From a sidecar or a bundle; checked.
SidecarConfig read_sidecar_config(const GgufReader & file);
// The penelope.* keys and adapter.lora.alpha. general.* and adapter.type are the caller's, see
// write_sidecar_identity().
void write_sidecar_keys(GgufWriter & writer, const SidecarConfig & config);
// general.type = adapter, adapter.type = penelope, general.architecture = that of the base.
void write_sidecar_identity(GgufWriter & writer, const SidecarConfig & config);
// Takes out all that write_sidecar_keys() sets.
void remove_sidecar_keys(GgufWriter & writer);
// general.type of a bundle; for a writer that already has the keys of the backbone.
void write_bundle_identity(GgufWriter & writer);

// How a tensor begins when a training makes it.
enum class TensorInit {
    anchor,       // every row the embedding that latent rows start from
    anchor_noise, // the same, and normal noise of deviation 0.02
    noise,
    ones,
    zeros,
    uniform, // within 1/sqrt(fan_in), as PyTorch starts linear layers and recurrent units
};

struct TensorShape {
    std::string          name;
    std::vector<int64_t> ne; // ggml order
    TensorInit           start     = TensorInit::noise;
    int64_t              fan_in    = 0;     // of the layer a uniform tensor belongs to
    bool                 is_matrix = false; // multiplied at every latent step: keeps its type, may take a faster layout
};

// Every module tensor of the method at model width d, LoRA pairs aside.
std::vector<TensorShape> module_tensor_shapes(const SidecarConfig & config, int64_t d);
// True for "<base tensor>.lora_a" and "<base tensor>.lora_b".
bool is_lora_tensor(const std::string & name);
// True for names of the table, whatever the method.
bool is_module_tensor(const std::string & name);

// All tensors of the table present with their shapes, nothing unknown beside them and the LoRA pairs (in a bundle: and
// the backbone), LoRA pairs complete, every value finite. Throws Error(format) naming the tensor.
void check_sidecar_tensors(const GgufReader & file, const SidecarConfig & config);

PromptFormat prompt_format_of(const SidecarConfig & config);

BaseInfo read_base_info(const GgufReader & base);
// Throws Error(format) listing every field in which the base differs from the one the sidecar was made for, and when
// its weights are others; changed weights only draw a warning when they are allowed.
enum class WeightMismatch { refused, allowed };
void check_base(const SidecarConfig & config, const BaseInfo & base, WeightMismatch changed = WeightMismatch::refused);

} // namespace penelope
