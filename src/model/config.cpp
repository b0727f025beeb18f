#include "model/config.h"

#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"

namespace penelope {

namespace {

// Far above any model there is, far below what would overflow a size computed from them.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxWidth  = 1u << 20;
constexpr uint32_t kMaxVocab  = 1u << 24;

int bounded(const GgufReader & file, const std::string & key, uint32_t value, uint32_t max) {
    if (value == 0 || value > max) {
        throw Error(ErrorKind::format, file.path() + ": " + key + " is " + std::to_string(value) + ", expected 1 to " +
                                           std::to_string(max));
    }
    return int(value);
}

int get_bounded(const GgufReader & file, const std::string & key, uint32_t max) {
    return bounded(file, key, file.get_u32(key), max);
}

void require(bool ok, const GgufReader & file, const std::string & what) {
    if (!ok) {
        throw Error(ErrorKind::format, file.path() + ": " + what);
    }
}

} // namespace

ModelConfig read_model_config(const GgufReader & file) {
    if (file.find_u32(keys::split_count).value_or(1) > 1) {
        throw Error(ErrorKind::unsupported, file.path() + ": is one part of a model split over several files",
                    "join the parts with llama-gguf-split --merge");
    }
    ModelConfig c;
    c.architecture = file.get_str(keys::general_architecture);
    if (c.architecture != "llama") {
        throw Error(ErrorKind::unsupported,
                    file.path() + ": general.architecture is '" + c.architecture + "', expected 'llama'",
                    "supported architectures: llama");
    }
    const std::string p = c.architecture + ".";
    c.name              = file.find_str("general.name").value_or("");
    c.n_layer           = get_bounded(file, p + "block_count", kMaxLayers);
    c.n_embd            = get_bounded(file, p + "embedding_length", kMaxWidth);
    c.n_ff              = get_bounded(file, p + "feed_forward_length", kMaxWidth);
    c.n_head            = get_bounded(file, p + "attention.head_count", kMaxWidth);
    c.n_head_kv         = bounded(file, p + "attention.head_count_kv",
                                  file.find_u32(p + "attention.head_count_kv").value_or(c.n_head), kMaxWidth);
    c.n_ctx_train       = get_bounded(file, p + "context_length", 1u << 30);
    c.rms_eps           = file.get_f32(p + "attention.layer_norm_rms_epsilon");
    c.rope_base         = file.find_f32(p + "rope.freq_base").value_or(10000.0f);

    const std::string key_length = p + "attention.key_length";
    if (file.has(key_length)) {
        c.head_dim = get_bounded(file, key_length, 4096);
    } else {
        require(c.n_embd % c.n_head == 0, file,
                p + "embedding_length is not a multiple of " + p + "attention.head_count, expected " + key_length);
        c.head_dim = c.n_embd / c.n_head;
    }
    const auto value_length = file.find_u32(p + "attention.value_length");
    require(!value_length || int(*value_length) == c.head_dim, file,
            p + "attention.value_length differs from the key length, expected " + std::to_string(c.head_dim));
    const auto rope_dims = file.find_u32(p + "rope.dimension_count");
    require(!rope_dims || int(*rope_dims) == c.head_dim, file,
            p + "rope.dimension_count is " + std::to_string(rope_dims.value_or(0)) + ", expected " +
                std::to_string(c.head_dim));
    require(c.head_dim % 2 == 0, file, "head width " + std::to_string(c.head_dim) + " is odd, expected an even one");
    require(c.n_head % c.n_head_kv == 0, file,
            p + "attention.head_count is not a multiple of " + p + "attention.head_count_kv");
    require(c.rms_eps > 0.0f && c.rms_eps < 1.0f, file,
            p + "attention.layer_norm_rms_epsilon is out of range, expected 0 to 1");
    require(c.rope_base >= 1.0f && c.rope_base < 1e12f, file, p + "rope.freq_base is out of range, expected 1 to 1e12");

    const auto scaling = file.find_str(p + "rope.scaling.type");
    if (scaling && *scaling != "none") {
        throw Error(ErrorKind::unsupported,
                    file.path() + ": " + p + "rope.scaling.type is '" + *scaling + "', expected 'none' or no such key",
                    "llama3 scaling is stored in the tensor rope_freqs.weight instead");
    }
    const GgufTensor * table = file.find_tensor("token_embd.weight");
    require(table != nullptr, file, "tensor token_embd.weight is missing, expected [embedding_length, vocabulary]");
    require(table->ne[1] > 0 && table->ne[1] <= int64_t(kMaxVocab), file,
            "tensor token_embd.weight has an impossible number of rows");
    c.n_vocab = int(table->ne[1]);
    return c;
}

} // namespace penelope
