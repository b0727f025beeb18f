#include "convert/hf_config.h"

#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace penelope {

namespace {

using nlohmann::json;

constexpr double k_pi = 3.14159265358979323846;

bool present(const json & object, const char * key) {
    return object.contains(key) && !object[key].is_null();
}

[[noreturn]] void fail(const std::string & path, const std::string & what) {
    throw Error(ErrorKind::format, path + ": " + what);
}

uint32_t get_count(const json & config, const char * key, const std::string & path) {
    if (!present(config, key)) {
        fail(path, std::string("'") + key + "' is missing");
    }
    const json & value = config[key];
    if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > INT32_MAX) {
        fail(path, std::string("'") + key + "' is not a positive integer");
    }
    return value.get<uint32_t>();
}

double get_positive(const json & object, const char * key, const std::string & path) {
    if (!present(object, key) || !object[key].is_number()) {
        fail(path, std::string("'") + key + "' is missing or not a number");
    }
    const double value = object[key].get<double>();
    if (!(value > 0) || !std::isfinite(value)) {
        fail(path, std::string("'") + key + "' is not positive");
    }
    return value;
}

bool get_flag(const json & config, const char * key, bool fallback, const std::string & path) {
    if (!present(config, key)) {
        return fallback;
    }
    if (!config[key].is_boolean()) {
        fail(path, std::string("'") + key + "' is not true or false");
    }
    return config[key].get<bool>();
}

std::vector<int32_t> get_ids(const json & config, const char * key, const std::string & path) {
    std::vector<int32_t> ids;
    if (!present(config, key)) {
        return ids;
    }
    const json list = config[key].is_array() ? config[key] : json::array({ config[key] });
    for (const auto & id : list) {
        if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
            fail(path, std::string("'") + key + "' is not a token id");
        }
        ids.push_back(id.get<int32_t>());
    }
    return ids;
}

// Older configs have rope_theta at the top and rope_scaling beside it, newer ones nest both in rope_parameters.
void parse_rope(const json & config, const std::string & path, HfLlamaConfig & out) {
    const json empty   = json::object();
    const bool nested  = present(config, "rope_parameters");
    const json scaling = nested                            ? config["rope_parameters"]
                         : present(config, "rope_scaling") ? config["rope_scaling"]
                                                           : empty;
    if (!scaling.is_object()) {
        fail(path, "rope_scaling is not an object");
    }
    const json & theta_owner = present(scaling, "rope_theta") ? scaling : config;
    out.rope_theta = present(theta_owner, "rope_theta") ? get_positive(theta_owner, "rope_theta", path) : 10000.0;

    const char * type_key = present(scaling, "rope_type") ? "rope_type" : "type";
    std::string  type     = "default";
    if (present(scaling, type_key)) {
        if (!scaling[type_key].is_string()) {
            fail(path, "rope type is not a string");
        }
        type = scaling[type_key].get<std::string>();
    }
    if (type == "llama3") {
        Llama3RopeScaling s;
        s.factor           = get_positive(scaling, "factor", path);
        s.low_freq_factor  = get_positive(scaling, "low_freq_factor", path);
        s.high_freq_factor = get_positive(scaling, "high_freq_factor", path);
        s.original_context = get_positive(scaling, "original_max_position_embeddings", path);
        if (s.high_freq_factor <= s.low_freq_factor) {
            fail(path, "high_freq_factor must be above low_freq_factor");
        }
        out.rope_scaling = s;
    } else if (type != "default") {
        throw Error(ErrorKind::unsupported, path + ": rope type '" + type + "' is not supported",
                    "supported are 'default' and 'llama3'");
    }
}

// 1e-05 instead of the double nearest to the float 1e-05f.
double shortest_decimal(float value) {
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        std::snprintf(text, sizeof text, "%.*g", digits, double(value));
        if (std::strtof(text, nullptr) == value) {
            break;
        }
    }
    return std::strtod(text, nullptr);
}

} // namespace

HfLlamaConfig parse_hf_llama_config(const json & config, const std::string & path) {
    if (!config.is_object()) {
        fail(path, "not a JSON object");
    }
    HfLlamaConfig out;
    out.n_layer   = get_count(config, "num_hidden_layers", path);
    out.n_context = get_count(config, "max_position_embeddings", path);
    out.n_embd    = get_count(config, "hidden_size", path);
    out.n_ff      = get_count(config, "intermediate_size", path);
    out.n_head    = get_count(config, "num_attention_heads", path);
    out.n_head_kv =
        present(config, "num_key_value_heads") ? get_count(config, "num_key_value_heads", path) : out.n_head;
    out.head_dim_given = present(config, "head_dim");
    out.head_dim       = out.head_dim_given ? get_count(config, "head_dim", path) : out.n_embd / out.n_head;
    out.rms_epsilon    = float(get_positive(config, "rms_norm_eps", path));
    out.n_vocab        = get_count(config, "vocab_size", path);
    out.tied           = get_flag(config, "tie_word_embeddings", false, path);
    parse_rope(config, path, out);

    if (!out.head_dim_given && out.n_embd % out.n_head != 0) {
        fail(path, "hidden_size is not a multiple of num_attention_heads");
    }
    if (out.n_head % out.n_head_kv != 0) {
        fail(path, "num_attention_heads is not a multiple of num_key_value_heads");
    }
    if (out.head_dim % 2 != 0) {
        fail(path, "head_dim is odd");
    }
    if (present(config, "hidden_act") && config["hidden_act"] != "silu") {
        throw Error(ErrorKind::unsupported, path + ": hidden_act " + config["hidden_act"].dump() + " is not supported");
    }
    if (present(config, "partial_rotary_factor") && config["partial_rotary_factor"] != 1.0) {
        throw Error(ErrorKind::unsupported, path + ": partial_rotary_factor is not supported for Llama");
    }

    const auto bos    = get_ids(config, "bos_token_id", path);
    const auto pad    = get_ids(config, "pad_token_id", path);
    out.eos_token_ids = get_ids(config, "eos_token_id", path);
    if (!bos.empty()) {
        out.bos_token_id = bos[0];
    }
    if (!pad.empty()) {
        out.pad_token_id = pad[0];
    }
    return out;
}

HfLlamaConfig read_gguf_llama_config(const GgufReader & gguf) {
    const std::string architecture = gguf.get_str(keys::general_architecture);
    if (architecture != "llama") {
        throw Error(ErrorKind::unsupported, gguf.path() + ": architecture '" + architecture + "' is not supported here",
                    "supported is 'llama'");
    }
    const auto    key = [](const char * name) { return keys::arch("llama", name); };
    HfLlamaConfig out;
    out.n_layer        = gguf.get_u32(key(keys::block_count));
    out.n_context      = gguf.get_u32(key(keys::context_length));
    out.n_embd         = gguf.get_u32(key(keys::embedding_length));
    out.n_ff           = gguf.get_u32(key(keys::feed_forward_length));
    out.n_head         = gguf.get_u32(key(keys::head_count));
    out.n_head_kv      = gguf.find_u32(key(keys::head_count_kv)).value_or(out.n_head);
    out.head_dim_given = gguf.has(key(keys::key_length));
    out.rms_epsilon    = gguf.get_f32(key(keys::layer_norm_rms_epsilon));
    out.rope_theta     = shortest_decimal(gguf.find_f32(key(keys::rope_freq_base)).value_or(10000.0f));
    if (out.n_head == 0 || out.n_head_kv == 0 || out.n_head % out.n_head_kv != 0 || out.n_embd == 0 ||
        out.n_layer == 0) {
        fail(gguf.path(), "its layer or head counts are impossible");
    }
    out.head_dim = gguf.find_u32(key(keys::key_length)).value_or(out.n_embd / out.n_head);
    if (out.head_dim == 0 || out.head_dim % 2 != 0) {
        fail(gguf.path(), "its head dimension is impossible");
    }
    const GgufTensor * embedding = gguf.find_tensor("token_embd.weight");
    if (!embedding || embedding->n_dims != 2 || embedding->ne[1] > INT32_MAX) {
        fail(gguf.path(), "tensor 'token_embd.weight' is missing or misshapen");
    }
    out.n_vocab = uint32_t(embedding->ne[1]);
    out.tied    = gguf.find_tensor("output.weight") == nullptr;
    return out;
}

nlohmann::ordered_json hf_llama_config_json(const HfLlamaConfig & config) {
    nlohmann::ordered_json out;
    out["architectures"]       = { "LlamaForCausalLM" };
    out["model_type"]          = "llama";
    out["attention_bias"]      = false;
    out["mlp_bias"]            = false;
    out["hidden_act"]          = "silu";
    out["hidden_size"]         = config.n_embd;
    out["intermediate_size"]   = config.n_ff;
    out["num_hidden_layers"]   = config.n_layer;
    out["num_attention_heads"] = config.n_head;
    out["num_key_value_heads"] = config.n_head_kv;
    if (config.head_dim_given) {
        out["head_dim"] = config.head_dim;
    }
    out["max_position_embeddings"] = config.n_context;
    out["rms_norm_eps"]            = shortest_decimal(config.rms_epsilon);
    out["rope_theta"]              = config.rope_theta;
    out["vocab_size"]              = config.n_vocab;
    out["tie_word_embeddings"]     = config.tied;
    if (config.rope_scaling) {
        out["rope_scaling"]["rope_type"]                        = "llama3";
        out["rope_scaling"]["factor"]                           = config.rope_scaling->factor;
        out["rope_scaling"]["low_freq_factor"]                  = config.rope_scaling->low_freq_factor;
        out["rope_scaling"]["high_freq_factor"]                 = config.rope_scaling->high_freq_factor;
        out["rope_scaling"]["original_max_position_embeddings"] = uint64_t(config.rope_scaling->original_context);
    }
    if (config.bos_token_id) {
        out["bos_token_id"] = *config.bos_token_id;
    }
    if (config.eos_token_ids.size() == 1) {
        out["eos_token_id"] = config.eos_token_ids[0];
    } else if (!config.eos_token_ids.empty()) {
        out["eos_token_id"] = config.eos_token_ids;
    }
    if (config.pad_token_id) {
        out["pad_token_id"] = *config.pad_token_id;
    }
    return out;
}

void write_llama_keys(GgufWriter & writer, const HfLlamaConfig & config) {
    const auto key = [](const char * name) { return keys::arch("llama", name); };
    writer.set_str(keys::general_architecture, "llama");
    writer.set_u32(key(keys::block_count), config.n_layer);
    writer.set_u32(key(keys::context_length), config.n_context);
    writer.set_u32(key(keys::embedding_length), config.n_embd);
    writer.set_u32(key(keys::feed_forward_length), config.n_ff);
    writer.set_u32(key(keys::head_count), config.n_head);
    writer.set_u32(key(keys::head_count_kv), config.n_head_kv);
    if (config.head_dim_given) {
        writer.set_u32(key(keys::key_length), config.head_dim);
        writer.set_u32(key(keys::value_length), config.head_dim);
    }
    writer.set_f32(key(keys::layer_norm_rms_epsilon), config.rms_epsilon);
    writer.set_f32(key(keys::rope_freq_base), float(config.rope_theta));
    writer.set_u32(key(keys::rope_dimension_count), config.head_dim);
    writer.set_u32(key(keys::vocab_size), config.n_vocab);
}

std::vector<float> llama3_rope_factors(const Llama3RopeScaling & scaling, double theta, uint32_t head_dim) {
    const double shortest_scaled = scaling.original_context / scaling.high_freq_factor;
    const double longest_mixed   = scaling.original_context / scaling.low_freq_factor;

    std::vector<float> factors;
    for (uint32_t i = 0; i < head_dim / 2; i++) {
        // The reference computes the frequencies in F32, so the same rounding decides on which side of a limit one falls.
        const float  frequency  = 1.0f / std::pow(float(theta), float(2 * i) / float(head_dim));
        const double wavelength = 2 * k_pi / double(frequency);
        if (wavelength < shortest_scaled) {
            factors.push_back(1.0f);
        } else if (wavelength > longest_mixed) {
            factors.push_back(float(scaling.factor));
        } else {
            const double smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) /
                                  (scaling.high_freq_factor - scaling.low_freq_factor);
            factors.push_back(float(1.0 / ((1.0 - smooth) / scaling.factor + smooth)));
        }
    }
    return factors;
}

} // namespace penelope
