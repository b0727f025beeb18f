#include "convert/hf_config.h"

#include "base/error.h"
#include "base/format.h"
#include "base/number_text.h"

#include <cmath>

namespace penelope {

namespace {

using nlohmann::json;

constexpr double k_pi = 3.14159265358979323846;

// Numbers beyond these are no model's, and some no float's.
constexpr double k_min_value   = 1e-12;
constexpr double k_max_base    = 1e12;
constexpr double k_max_scaling = 1e6;

bool present(const json & object, const char * key) {
    return object.contains(key) && !object[key].is_null();
}

[[noreturn]] void fail(const std::string & path, const std::string & what) {
    throw Error(ErrorKind::format, path + ": " + what);
}

int get_count(const json & config, const char * key, uint32_t most, const std::string & path) {
    if (!present(config, key)) {
        fail(path, std::string("'") + key + "' is missing");
    }
    const json & value = config[key];
    if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > most) {
        fail(path, std::string("'") + key + "' is " + in_quotes(dump_json(value)) + ", expected 1 to " +
                       std::to_string(most));
    }
    return value.get<int>();
}

double get_positive(const json & object, const char * key, double most, const std::string & path) {
    if (!present(object, key) || !object[key].is_number()) {
        fail(path, std::string("'") + key + "' is missing or not a number");
    }
    const double value = object[key].get<double>();
    if (!(value >= k_min_value && value <= most)) {
        fail(path, std::string("'") + key + "' is " + in_quotes(dump_json(object[key])) + ", which is out of range");
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

std::vector<float> get_factors(const json & scaling, const char * key, int n, const std::string & path) {
    if (!present(scaling, key) || !scaling[key].is_array() || scaling[key].size() != size_t(n)) {
        fail(path, std::string("'") + key + "' is not a list of " + std::to_string(n) + " numbers");
    }
    std::vector<float> factors;
    for (const json & factor : scaling[key]) {
        if (!factor.is_number() || !(factor.get<double>() >= k_min_value && factor.get<double>() <= k_max_scaling)) {
            fail(path, std::string("'") + key + "' has an entry that is out of range");
        }
        factors.push_back(factor.get<float>());
    }
    return factors;
}

// LongRoPE: divisors of the frequencies for contexts up to the original length and for longer ones. Sine and cosine are
// scaled in both.
void parse_long_rope(const json & config, const json & scaling, const std::string & path, HfConfig & out) {
    ModelConfig & c                            = out.model;
    out.constants["rope_factors_long.weight"]  = get_factors(scaling, "long_factor", c.n_rope() / 2, path);
    out.constants["rope_factors_short.weight"] = get_factors(scaling, "short_factor", c.n_rope() / 2, path);
    const char * original                      = "original_max_position_embeddings";
    c.n_ctx_short      = get_count(present(scaling, original) ? scaling : config, original, kMaxContext, path);
    const double ratio = present(scaling, "factor") ? get_positive(scaling, "factor", k_max_scaling, path)
                                                    : double(c.n_ctx_train) / double(c.n_ctx_short);
    c.rope_magnitude   = present(scaling, "attention_factor")
                             ? float(get_positive(scaling, "attention_factor", k_max_scaling, path))
                         : ratio <= 1.0 ? 1.0f
                                        : float(std::sqrt(1.0 + std::log(ratio) / std::log(double(c.n_ctx_short))));
}

// Older configs have rope_theta at the top and rope_scaling beside it, newer ones nest both in rope_parameters.
void parse_rope(const json & config, const std::string & path, const Architecture & arch, HfConfig & out) {
    const json empty   = json::object();
    const bool nested  = present(config, "rope_parameters");
    json       scaling = nested                            ? config["rope_parameters"]
                         : present(config, "rope_scaling") ? config["rope_scaling"]
                                                           : empty;
    if (scaling.is_object() &&
        present(scaling, "full_attention")) { // layers with a window have a rotation of their own
        scaling = json(scaling["full_attention"]);
    }
    if (!scaling.is_object()) {
        fail(path, "rope_scaling is not an object");
    }
    const json &  theta_owner = present(scaling, "rope_theta") ? scaling : config;
    ModelConfig & c           = out.model;
    c.rope_base =
        float(present(theta_owner, "rope_theta") ? get_positive(theta_owner, "rope_theta", k_max_base, path) : 10000.0);

    const json & turning = present(scaling, "partial_rotary_factor") ? scaling : config;
    const double share   = present(turning, "partial_rotary_factor")
                               ? get_positive(turning, "partial_rotary_factor", k_max_scaling, path)
                               : 1.0;
    if (share != 1.0 && (!arch.partial_rotary || share > 1.0)) {
        throw Error(ErrorKind::unsupported,
                    path + ": partial_rotary_factor is not supported for " + std::string(arch.name));
    }
    c.rope_dims = int(c.head_dim * share);
    if (c.rope_dims <= 0 || c.rope_dims % 2 != 0) {
        fail(path, "partial_rotary_factor turns an odd number of features");
    }

    const char * type_key = present(scaling, "rope_type") ? "rope_type" : "type";
    std::string  type     = "default";
    if (present(scaling, type_key)) {
        if (!scaling[type_key].is_string()) {
            fail(path, "rope type is not a string");
        }
        type = scaling[type_key].get<std::string>();
    }
    if (type == "llama3" && arch.scaled_rope) {
        Llama3RopeScaling s;
        s.factor           = get_positive(scaling, "factor", k_max_scaling, path);
        s.low_freq_factor  = get_positive(scaling, "low_freq_factor", k_max_scaling, path);
        s.high_freq_factor = get_positive(scaling, "high_freq_factor", k_max_scaling, path);
        s.original_context = get_positive(scaling, "original_max_position_embeddings", kMaxContext, path);
        if (s.high_freq_factor <= s.low_freq_factor) {
            fail(path, "high_freq_factor must be above low_freq_factor");
        }
        out.rope_scaling                   = s;
        out.constants["rope_freqs.weight"] = llama3_rope_factors(s, double(c.rope_base), c.n_rope());
    } else if (type == "linear" && arch.linear_rope) {
        c.rope_factor = float(get_positive(scaling, "factor", k_max_scaling, path));
    } else if ((type == "longrope" || type == "su" || type == "yarn") && arch.long_rope) {
        parse_long_rope(config, scaling, path, out);
    } else if (type != "default") {
        throw Error(ErrorKind::unsupported, path + ": rope type '" + type + "' is not supported",
                    std::string("supported is 'default'") + (arch.scaled_rope ? " and 'llama3'" : "") +
                        (arch.linear_rope ? " and 'linear'" : "") + (arch.long_rope ? " and 'longrope'" : ""));
    }
}

} // namespace

HfConfig parse_hf_config(const json & whole, const std::string & path) {
    if (!whole.is_object()) {
        fail(path, "not a JSON object");
    }
    const std::string    type = json_find<std::string>(whole, "model_type", path).value_or("");
    const Architecture * arch = find_architecture_of_hf(type);
    if (!arch) {
        throw Error(ErrorKind::unsupported, path + ": model type " + in_quotes(type) + " is not supported",
                    "supported architectures: " + architecture_names());
    }
    if (present(whole, "quantization_config")) {
        throw Error(ErrorKind::unsupported, path + ": the checkpoint is quantized already",
                    "convert the original F32, F16 or BF16 checkpoint");
    }
    // Checkpoints that also see or hear keep the decoder's numbers in an object of their own.
    const json &  config = present(whole, "text_config") ? whole["text_config"] : whole;
    HfConfig      out;
    ModelConfig & c = out.model;
    c.architecture  = arch->name;
    c.n_layer       = get_count(config, "num_hidden_layers", kMaxLayers, path);
    c.n_ctx_train   = get_count(config, "max_position_embeddings", kMaxContext, path);
    c.n_embd        = get_count(config, "hidden_size", kMaxWidth, path);
    c.n_ff          = get_count(config, "intermediate_size", kMaxWidth, path);
    c.n_head        = get_count(config, "num_attention_heads", kMaxWidth, path);
    c.n_head_kv =
        present(config, "num_key_value_heads") ? get_count(config, "num_key_value_heads", kMaxWidth, path) : c.n_head;
    c.has_head_dim = present(config, "head_dim");
    c.head_dim     = c.has_head_dim ? get_count(config, "head_dim", kMaxHeadWidth, path) : c.n_embd / c.n_head;
    c.rms_eps      = float(get_positive(config, "rms_norm_eps", 1, path));
    c.n_vocab      = get_count(config, "vocab_size", kMaxTokens, path);
    c.tied = get_flag(config, "tie_word_embeddings", get_flag(whole, "tie_word_embeddings", arch->hf_tied, path), path);
    if (!c.has_head_dim && c.n_embd % c.n_head != 0) {
        fail(path, "hidden_size is not a multiple of num_attention_heads");
    }
    if (c.n_head % c.n_head_kv != 0) {
        fail(path, "num_attention_heads is not a multiple of num_key_value_heads");
    }
    if (c.head_dim % 2 != 0) {
        fail(path, "head_dim is odd");
    }
    parse_rope(config, path, *arch, out);
    if (!config_error(c).empty()) {
        fail(path, config_error(c));
    }
    if (const char * key = arch->hf_activation_key; present(config, key) && config[key] != arch->hf_activation) {
        throw Error(ErrorKind::unsupported, path + ": " + key + " " + dump_json(config[key]) + " is not supported",
                    std::string("supported is ") + arch->hf_activation);
    }
    if (arch->read_hf) {
        arch->read_hf(config, path, c);
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

OrderedJson hf_config_json(const HfConfig & config) {
    const ModelConfig &  c    = config.model;
    const Architecture & arch = get_architecture(c);
    OrderedJson          out;
    out["architectures"] = { arch.hf_class };
    out["model_type"]    = arch.hf_types.front();
    if (arch.write_hf) {
        arch.write_hf(c, out);
    }
    out[arch.hf_activation_key] = arch.hf_activation;
    out["hidden_size"]          = c.n_embd;
    out["intermediate_size"]    = c.n_ff;
    out["num_hidden_layers"]    = c.n_layer;
    out["num_attention_heads"]  = c.n_head;
    out["num_key_value_heads"]  = c.n_head_kv;
    if (c.has_head_dim) {
        out["head_dim"] = c.head_dim;
    }
    out["max_position_embeddings"] = c.n_ctx_train;
    out["rms_norm_eps"]            = shortest_decimal(c.rms_eps);
    if (out.contains("rope_parameters")) {
        out["rope_parameters"]["rope_theta"] = shortest_decimal(c.rope_base);
    } else {
        out["rope_theta"] = shortest_decimal(c.rope_base);
    }
    out["vocab_size"]          = c.n_vocab;
    out["tie_word_embeddings"] = c.tied;
    if (config.rope_scaling) {
        out["rope_scaling"]["rope_type"]                        = "llama3";
        out["rope_scaling"]["factor"]                           = config.rope_scaling->factor;
        out["rope_scaling"]["low_freq_factor"]                  = config.rope_scaling->low_freq_factor;
        out["rope_scaling"]["high_freq_factor"]                 = config.rope_scaling->high_freq_factor;
        out["rope_scaling"]["original_max_position_embeddings"] = uint64_t(config.rope_scaling->original_context);
    }
    if (c.n_ctx_short > 0) {
        const auto list_of = [&](const char * tensor) {
            OrderedJson list = OrderedJson::array();
            for (const float factor : config.constants.at(tensor)) {
                list.push_back(shortest_decimal(factor));
            }
            return list;
        };
        out["rope_scaling"]["rope_type"]        = "longrope";
        out["rope_scaling"]["type"]             = "longrope";
        out["rope_scaling"]["long_factor"]      = list_of("rope_factors_long.weight");
        out["rope_scaling"]["short_factor"]     = list_of("rope_factors_short.weight");
        out["rope_scaling"]["attention_factor"] = shortest_decimal(c.rope_magnitude);
    }
    // Null, not left out: some classes of transformers have ids of their own for what is missing.
    out["bos_token_id"] = config.bos_token_id ? OrderedJson(*config.bos_token_id) : OrderedJson();
    if (config.eos_token_ids.size() == 1) {
        out["eos_token_id"] = config.eos_token_ids[0];
    } else if (!config.eos_token_ids.empty()) {
        out["eos_token_id"] = config.eos_token_ids;
    }
    out["pad_token_id"] = config.pad_token_id ? OrderedJson(*config.pad_token_id) : OrderedJson();
    return out;
}

std::vector<float> llama3_rope_factors(const Llama3RopeScaling & scaling, double theta, int n_dims) {
    const double shortest_scaled = scaling.original_context / scaling.high_freq_factor;
    const double longest_mixed   = scaling.original_context / scaling.low_freq_factor;

    std::vector<float> factors;
    for (int i = 0; i < n_dims / 2; i++) {
        // The reference computes the frequencies in F32, so the same rounding decides on which side of a limit one
        // falls.
        const float  frequency  = 1.0f / std::pow(float(theta), float(2 * i) / float(n_dims));
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
