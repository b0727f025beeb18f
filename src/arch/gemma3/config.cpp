#include "arch/gemma3/config.h"

#include "base/error.h"
#include "base/number_text.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

constexpr int   kDefaultPeriod     = 6;
constexpr float kDefaultWindowBase = 10000.0f;
constexpr int   kLayersOf27b       = 62;

// Every period-th layer sees everything.
std::vector<bool> windowed_layers(int n_layer, int period) {
    std::vector<bool> is_windowed;
    for (int il = 0; il < n_layer; il++) {
        is_windowed.push_back((il + 1) % period != 0);
    }
    return is_windowed;
}

// 0: the layers follow no period.
int period_of(const ModelConfig & c) {
    for (int period = 1; period <= c.n_layer + 1; period++) {
        if (c.is_windowed == windowed_layers(c.n_layer, period)) {
            return period;
        }
    }
    return 0;
}

// What follows from the other numbers. GGUF has no key for the scale of the scores: the 27B model is the exception.
void derive(ModelConfig & c) {
    c.embedding_scale = std::sqrt(float(c.n_embd));
    c.attention_scale = 1.0f / std::sqrt(float(c.n_layer == kLayersOf27b ? c.n_embd / c.n_head : c.head_dim));
}

} // namespace

void read_gemma3_gguf(const GgufReader & file, ModelConfig & c) {
    const auto key = [&](const char * name) { return keys::arch(c.architecture, name); };
    if (file.find_f32(key(keys::final_logit_softcapping)).value_or(0.0f) != 0.0f) {
        throw Error(ErrorKind::unsupported, file.path() + ": " + key(keys::final_logit_softcapping) +
                                                " is not supported, expected no such key");
    }
    derive(c);
    if (file.find_u32(key(keys::sliding_window)).value_or(0) == 0) {
        return;
    }
    c.window           = get_bounded(file, key(keys::sliding_window), kMaxContext);
    c.window_rope_base = find_factor(file, key(keys::rope_freq_base_swa), kDefaultWindowBase);
    const int period   = file.has(key(keys::sliding_window_pattern))
                             ? get_bounded(file, key(keys::sliding_window_pattern), kMaxLayers)
                             : kDefaultPeriod;
    c.is_windowed      = windowed_layers(c.n_layer, period);
}

void write_gemma3_gguf(GgufWriter & writer, const ModelConfig & c) {
    const auto key = [&](const char * name) { return keys::arch(c.architecture, name); };
    if (c.window == 0) {
        return;
    }
    writer.set_u32(key(keys::sliding_window), uint32_t(c.window));
    if (period_of(c) != kDefaultPeriod) {
        writer.set_u32(key(keys::sliding_window_pattern), uint32_t(period_of(c)));
    }
    if (c.window_rope_base != kDefaultWindowBase) {
        writer.set_f32(key(keys::rope_freq_base_swa), c.window_rope_base);
    }
}

void read_gemma3_hf(const Json & json, const std::string & path, ModelConfig & c) {
    for (const char * cap : { "attn_logit_softcapping", "final_logit_softcapping" }) {
        if (json_find<double>(json, cap, path).value_or(0.0) != 0.0) {
            throw Error(ErrorKind::unsupported, path + ": " + cap + " is not supported");
        }
    }
    for (const char * flag : { "attention_bias", "use_bidirectional_attention" }) {
        if (json_find<bool>(json, flag, path).value_or(false)) {
            throw Error(ErrorKind::unsupported, path + ": " + flag + " is not supported");
        }
    }
    derive(c);
    const double scalar = json_find<double>(json, "query_pre_attn_scalar", path).value_or(256.0);
    if (std::fabs(1.0 / std::sqrt(scalar) / double(c.attention_scale) - 1.0) > 1e-5) {
        throw Error(ErrorKind::unsupported,
                    path + ": 'query_pre_attn_scalar' is " + std::to_string(scalar) + ", expected " +
                        std::to_string(1.0f / (c.attention_scale * c.attention_scale)),
                    "a GGUF file cannot describe another one");
    }
    c.window = int(
        std::clamp<int64_t>(json_find<int64_t>(json, "sliding_window", path).value_or(4096), 0, int64_t(kMaxContext)));
    if (json.contains("layer_types") && json["layer_types"].is_array()) {
        for (const Json & type : json["layer_types"]) {
            if (type != "sliding_attention" && type != "full_attention") {
                throw Error(ErrorKind::unsupported, path + ": layer type " + dump_json(type) + " is not supported");
            }
            c.is_windowed.push_back(type == "sliding_attention");
        }
    } else {
        const int64_t period = json_find<int64_t>(json, "sliding_window_pattern", path).value_or(kDefaultPeriod);
        c.is_windowed        = windowed_layers(c.n_layer, int(std::clamp<int64_t>(period, 1, c.n_layer + 1)));
    }
    if (int(c.is_windowed.size()) != c.n_layer || period_of(c) == 0) {
        throw Error(ErrorKind::unsupported,
                    path + ": 'layer_types' is not one layer of full attention after each " +
                        "few with a sliding window",
                    "a GGUF file cannot describe another pattern");
    }
    c.window_rope_base = kDefaultWindowBase;
    const Json rope    = json.contains("rope_parameters") ? json["rope_parameters"] : Json();
    if (rope.is_object() && rope.contains("sliding_attention") && rope["sliding_attention"].is_object()) {
        c.window_rope_base = float(
            json_find<double>(rope["sliding_attention"], "rope_theta", path).value_or(double(kDefaultWindowBase)));
    } else if (const auto base = json_find<double>(json, "rope_local_base_freq", path)) {
        c.window_rope_base = float(*base);
    }
    if (c.window == 0 || std::none_of(c.is_windowed.begin(), c.is_windowed.end(), [](bool one) { return one; })) {
        c.window = 0;
        c.is_windowed.clear();
    }
    if (!(c.window_rope_base >= 1.0f && c.window_rope_base < 1e6f)) {
        throw Error(ErrorKind::format, path + ": the base of the rotation of layers with a window is out of range");
    }
}

void write_gemma3_hf(const ModelConfig & c, OrderedJson & json) {
    json["attention_bias"]        = false;
    json["query_pre_attn_scalar"] = std::lround(1.0 / (double(c.attention_scale) * double(c.attention_scale)));
    json["sliding_window"]        = c.window > 0 ? c.window : 4096;
    for (int il = 0; il < c.n_layer; il++) {
        json["layer_types"].push_back(c.window_of(il) > 0 ? "sliding_attention" : "full_attention");
    }
    json["rope_local_base_freq"] = shortest_decimal(c.window > 0 ? c.window_rope_base : kDefaultWindowBase);
    if (c.rope_factor != 1.0f) {
        json["rope_scaling"] = { { "rope_type", "linear" }, { "factor", shortest_decimal(c.rope_factor) } };
    }
}

std::string describe_gemma3(const ModelConfig & c) {
    const auto n = std::count(c.is_windowed.begin(), c.is_windowed.end(), true);
    return std::to_string(n) + " with a sliding window of " + std::to_string(c.window) + " tokens and " +
           std::to_string(c.n_layer - n) + " with full attention";
}

KnownShape gemma3_shape(const char * name, int n_layer, int n_embd, int n_ff) {
    ModelConfig c;
    c.architecture     = "gemma3";
    c.name             = name;
    c.n_layer          = n_layer;
    c.n_embd           = n_embd;
    c.n_ff             = n_ff;
    c.n_head           = 4;
    c.n_head_kv        = 1;
    c.head_dim         = 256;
    c.has_head_dim     = true;
    c.n_vocab          = 262144;
    c.n_ctx_train      = 32768;
    c.rms_eps          = 1e-6f;
    c.rope_base        = 1000000.0f;
    c.window           = 512;
    c.window_rope_base = kDefaultWindowBase;
    c.is_windowed      = windowed_layers(n_layer, kDefaultPeriod);
    derive(c);
    return { name, c, n_layer * 2 / 3 };
}

} // namespace penelope
