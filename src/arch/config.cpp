#include "arch/config.h"

#include "arch/architecture.h"
#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace penelope {

namespace {

int bounded(const GgufReader & file, const std::string & key, uint32_t value, uint32_t max) {
    if (value == 0 || value > max) {
        throw Error(ErrorKind::format, file.path() + ": " + key + " is " + std::to_string(value) + ", expected 1 to " +
                                           std::to_string(max));
    }
    return int(value);
}

} // namespace

int get_bounded(const GgufReader & file, const std::string & key, uint32_t max) {
    return bounded(file, key, file.get_u32(key), max);
}

float find_factor(const GgufReader & file, const std::string & key, float fallback) {
    const float value = file.find_f32(key).value_or(fallback);
    require(value == fallback || (value > 1e-6f && value < 1e6f), file,
            key + " is " + std::to_string(value) + ", expected 1e-6 to 1e6");
    return value;
}

void require(bool ok, const GgufReader & file, const std::string & what) {
    if (!ok) {
        throw Error(ErrorKind::format, file.path() + ": " + what);
    }
}

std::string config_error(const ModelConfig & c) {
    if (c.head_dim <= 0 || c.head_dim % 2 != 0) {
        return "head width " + std::to_string(c.head_dim) + " is odd, expected an even one";
    }
    if (int64_t(c.head_dim) * c.n_head > int64_t(kMaxWidth)) {
        return std::to_string(c.n_head) + " heads of width " + std::to_string(c.head_dim) + " exceed the limit of " +
               std::to_string(kMaxWidth) + " values";
    }
    if (c.n_head % c.n_head_kv != 0) {
        return std::to_string(c.n_head) + " heads, expected a multiple of the " + std::to_string(c.n_head_kv) +
               " for keys and values";
    }
    if (!(c.rms_eps > 0.0f && c.rms_eps < 1.0f)) {
        return "the epsilon of the norms is out of range, expected 0 to 1";
    }
    if (!(c.rope_base >= 1.0f && c.rope_base < 1e12f)) {
        return "the base of the rotation is out of range, expected 1 to 1e12";
    }
    return "";
}

ModelConfig read_model_config(const GgufReader & file) {
    ModelConfig          c;
    const Architecture & arch = get_architecture(file);
    c.architecture            = arch.name;
    const auto key            = [&](const char * name) { return keys::arch(c.architecture, name); };
    c.name                    = file.find_str(keys::general_name).value_or("");
    c.n_layer                 = get_bounded(file, key(keys::block_count), kMaxLayers);
    c.n_embd                  = get_bounded(file, key(keys::embedding_length), kMaxWidth);
    c.n_ff                    = get_bounded(file, key(keys::feed_forward_length), kMaxWidth);
    c.n_head                  = get_bounded(file, key(keys::head_count), kMaxWidth);
    c.n_head_kv =
        bounded(file, key(keys::head_count_kv), file.find_u32(key(keys::head_count_kv)).value_or(c.n_head), kMaxWidth);
    c.n_ctx_train = get_bounded(file, key(keys::context_length), kMaxContext);
    c.rms_eps     = file.get_f32(key(keys::layer_norm_rms_epsilon));
    c.rope_base   = file.find_f32(key(keys::rope_freq_base)).value_or(10000.0f);

    c.has_head_dim = file.has(key(keys::key_length));
    if (c.has_head_dim) {
        c.head_dim = get_bounded(file, key(keys::key_length), kMaxHeadWidth);
    } else {
        require(c.n_embd % c.n_head == 0, file,
                key(keys::embedding_length) + " is not a multiple of " + key(keys::head_count) + ", expected " +
                    key(keys::key_length));
        c.head_dim = c.n_embd / c.n_head;
    }
    const auto value_length = file.find_u32(key(keys::value_length));
    require(!value_length || int(*value_length) == c.head_dim, file,
            key(keys::value_length) + " differs from the key length, expected " + std::to_string(c.head_dim));
    const auto rope_dims = file.find_u32(key(keys::rope_dimension_count));
    require(!rope_dims || int(*rope_dims) == c.head_dim ||
                (arch.partial_rotary && *rope_dims > 0 && int(*rope_dims) < c.head_dim && *rope_dims % 2 == 0),
            file,
            key(keys::rope_dimension_count) + " is " + std::to_string(rope_dims.value_or(0)) + ", expected " +
                (arch.partial_rotary ? "an even number up to " : "") + std::to_string(c.head_dim));
    c.rope_dims = int(rope_dims.value_or(uint32_t(c.head_dim)));
    require(config_error(c).empty(), file, config_error(c));

    const auto scaling = file.find_str(key(keys::rope_scaling_type));
    if (scaling && *scaling == "linear" && arch.linear_rope) {
        c.rope_factor = file.get_f32(key(keys::rope_scaling_factor));
        require(c.rope_factor >= 1.0f && c.rope_factor < 1e6f, file,
                key(keys::rope_scaling_factor) + " is out of range, expected 1 to 1e6");
    } else if (scaling && *scaling != "none" && !(*scaling == "longrope" && arch.long_rope)) {
        throw Error(ErrorKind::unsupported,
                    file.path() + ": " + key(keys::rope_scaling_type) + " is '" + *scaling +
                        "', expected 'none' or no such key",
                    "llama3 scaling is stored in the tensor rope_freqs.weight instead");
    }
    const GgufTensor * table = file.find_tensor("token_embd.weight");
    require(table != nullptr, file, "tensor token_embd.weight is missing, expected [embedding_length, vocabulary]");
    require(table->ne[1] > 0 && table->ne[1] <= int64_t(kMaxTokens), file,
            "tensor token_embd.weight has an impossible number of rows");
    c.n_vocab = int(table->ne[1]);
    c.tied    = file.find_tensor("output.weight") == nullptr;
    if (arch.read_gguf) {
        arch.read_gguf(file, c);
    }
    return c;
}

void write_model_config(GgufWriter & writer, const ModelConfig & c) {
    const Architecture & arch = get_architecture(c);
    const auto           key  = [&](const char * name) { return keys::arch(c.architecture, name); };
    writer.set_str(keys::general_architecture, c.architecture);
    writer.set_u32(key(keys::block_count), uint32_t(c.n_layer));
    writer.set_u32(key(keys::context_length), uint32_t(c.n_ctx_train));
    writer.set_u32(key(keys::embedding_length), uint32_t(c.n_embd));
    writer.set_u32(key(keys::feed_forward_length), uint32_t(c.n_ff));
    writer.set_u32(key(keys::head_count), uint32_t(c.n_head));
    writer.set_u32(key(keys::head_count_kv), uint32_t(c.n_head_kv));
    if (c.has_head_dim) {
        writer.set_u32(key(keys::key_length), uint32_t(c.head_dim));
        writer.set_u32(key(keys::value_length), uint32_t(c.head_dim));
    }
    writer.set_f32(key(keys::layer_norm_rms_epsilon), c.rms_eps);
    writer.set_f32(key(keys::rope_freq_base), c.rope_base);
    writer.set_u32(key(keys::rope_dimension_count), uint32_t(c.n_rope()));
    writer.set_u32(key(keys::vocab_size), uint32_t(c.n_vocab));
    if (c.rope_factor != 1.0f) {
        writer.set_str(key(keys::rope_scaling_type), "linear");
        writer.set_f32(key(keys::rope_scaling_factor), c.rope_factor);
    }
    if (arch.write_gguf) {
        arch.write_gguf(writer, c);
    }
}

} // namespace penelope
