#include "arch/qwen35/config.h"

#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr int kDefaultInterval = 4;
constexpr int kMaxKernel       = 1 << 10;
constexpr int kMaxStateWidth   = 1 << 12;
constexpr int kMaxHeads        = 1 << 12;
constexpr int kRopeSections    = 4;

// Every interval-th layer is attention, the others are delta nets.
std::vector<bool> by_interval(int n_layer, int interval) {
    std::vector<bool> recurrent;
    for (int il = 0; il < n_layer; il++) {
        recurrent.push_back((il + 1) % interval != 0);
    }
    return recurrent;
}

// Empty when all is well.
std::string qwen35_config_error(const Qwen35Config & arch_config) {
    if (arch_config.n_value_heads % arch_config.n_key_heads != 0) {
        return std::to_string(arch_config.n_value_heads) +
               " value heads of the delta net, expected a multiple of its " + std::to_string(arch_config.n_key_heads) +
               " key heads";
    }
    if (arch_config.conv_kernel < 2 || arch_config.conv_kernel > 16) {
        return "a convolution over " + std::to_string(arch_config.conv_kernel) + " rows, expected 2 to 16";
    }
    if (arch_config.state_dim % 2 != 0) {
        return "delta heads of the odd width " + std::to_string(arch_config.state_dim) + ", expected an even one";
    }
    return "";
}

} // namespace

const Qwen35Config & qwen35_config(const ModelConfig & config) {
    return static_cast<const Qwen35Config &>(*config.arch_config);
}

void read_qwen35_gguf(const GgufReader & file, ModelConfig & c) {
    const auto key             = [&](const char * name) { return keys::arch(c.architecture, name); };
    auto       arch_config     = std::make_shared<Qwen35Config>();
    arch_config->conv_kernel   = get_bounded(file, key(keys::ssm_conv_kernel), kMaxKernel);
    arch_config->state_dim     = get_bounded(file, key(keys::ssm_state_size), kMaxStateWidth);
    arch_config->n_key_heads   = get_bounded(file, key(keys::ssm_group_count), kMaxHeads);
    arch_config->n_value_heads = get_bounded(file, key(keys::ssm_time_step_rank), kMaxHeads);
    const int n_inner          = get_bounded(file, key(keys::ssm_inner_size), 1 << 24);
    const int n_predicting     = int(file.find_u32(key(keys::nextn_predict_layers)).value_or(0));
    const int n_blocks         = c.n_layer;
    require(n_inner == arch_config->n_value_features(), file,
            key(keys::ssm_inner_size) + " is " + std::to_string(n_inner) + ", expected " +
                std::to_string(arch_config->n_value_features()) + ", value heads times state size");
    require(qwen35_config_error(*arch_config).empty(), file, qwen35_config_error(*arch_config));
    require(n_predicting >= 0 && n_predicting < n_blocks, file,
            key(keys::nextn_predict_layers) + " leaves no layer to run");
    c.n_layer -= n_predicting;
    c.n_skipped_layers = n_predicting;

    if (const auto kinds = file.find_i32_array(key(keys::recurrent_layers))) {
        require(int(kinds->size()) == n_blocks, file,
                key(keys::recurrent_layers) + " has " + std::to_string(kinds->size()) + " entries, expected " +
                    std::to_string(n_blocks));
        arch_config->is_recurrent.assign(kinds->begin(), kinds->begin() + c.n_layer);
    } else {
        const uint32_t interval = file.find_u32(key(keys::full_attention_interval)).value_or(kDefaultInterval);
        require(interval > 0, file, key(keys::full_attention_interval) + " is 0, expected 1 or more");
        arch_config->is_recurrent = by_interval(c.n_layer, int(interval));
    }
    if (const auto sections = file.find_i32_array(key(keys::rope_dimension_sections))) {
        require(sections->size() == kRopeSections, file,
                key(keys::rope_dimension_sections) + " has " + std::to_string(sections->size()) +
                    " entries, expected " + std::to_string(kRopeSections));
        arch_config->rope_sections.assign(sections->begin(), sections->end());
    }
    c.arch_config = arch_config;
}

void write_qwen35_gguf(GgufWriter & writer, const ModelConfig & c) {
    const auto           key         = [&](const char * name) { return keys::arch(c.architecture, name); };
    const Qwen35Config & arch_config = qwen35_config(c);
    writer.set_u32(key(keys::ssm_conv_kernel), uint32_t(arch_config.conv_kernel));
    writer.set_u32(key(keys::ssm_state_size), uint32_t(arch_config.state_dim));
    writer.set_u32(key(keys::ssm_group_count), uint32_t(arch_config.n_key_heads));
    writer.set_u32(key(keys::ssm_time_step_rank), uint32_t(arch_config.n_value_heads));
    writer.set_u32(key(keys::ssm_inner_size), uint32_t(arch_config.n_value_features()));
    writer.set_i32_array(key(keys::rope_dimension_sections),
                         { arch_config.rope_sections.begin(), arch_config.rope_sections.end() });
    // Prefer the interval key, which all readers know. Only irregular patterns need the list.
    for (int interval = 1; interval <= c.n_layer + 1; interval++) {
        if (arch_config.is_recurrent == by_interval(c.n_layer, interval)) {
            writer.set_u32(key(keys::full_attention_interval), uint32_t(interval));
            return;
        }
    }
    writer.set_bool_array(key(keys::recurrent_layers), arch_config.is_recurrent);
}

void read_qwen35_hf(const Json & json, const std::string & path, ModelConfig & c) {
    auto       arch_config = std::make_shared<Qwen35Config>();
    const auto count       = [&](const char * field, int most) {
        const int64_t value = json_get<int64_t>(json, field, path);
        if (value < 1 || value > most) {
            throw Error(ErrorKind::format, path + ": '" + field + "' is " + std::to_string(value) + ", expected 1 to " +
                                                     std::to_string(most));
        }
        return int(value);
    };
    arch_config->conv_kernel   = count("linear_conv_kernel_dim", kMaxKernel);
    arch_config->state_dim     = count("linear_key_head_dim", kMaxStateWidth);
    arch_config->n_key_heads   = count("linear_num_key_heads", kMaxHeads);
    arch_config->n_value_heads = count("linear_num_value_heads", kMaxHeads);
    if (count("linear_value_head_dim", kMaxStateWidth) != arch_config->state_dim) {
        throw Error(ErrorKind::unsupported, path + ": 'linear_value_head_dim' differs from 'linear_key_head_dim'");
    }
    if (!qwen35_config_error(*arch_config).empty()) {
        throw Error(ErrorKind::format, path + ": " + qwen35_config_error(*arch_config));
    }
    if (json_find<bool>(json, "attention_bias", path).value_or(false)) {
        throw Error(ErrorKind::unsupported, path + ": attention_bias is not supported");
    }
    if (json.contains("layer_types") && json["layer_types"].is_array()) {
        for (const Json & type : json["layer_types"]) {
            if (type != "linear_attention" && type != "full_attention") {
                throw Error(ErrorKind::unsupported, path + ": layer type " + dump_json(type) + " is not supported");
            }
            arch_config->is_recurrent.push_back(type == "linear_attention");
        }
    } else {
        const int64_t interval = json_find<int64_t>(json, "full_attention_interval", path).value_or(kDefaultInterval);
        arch_config->is_recurrent = by_interval(c.n_layer, int(std::clamp<int64_t>(interval, 1, c.n_layer + 1)));
    }
    if (int(arch_config->is_recurrent.size()) != c.n_layer) {
        throw Error(ErrorKind::format, path + ": 'layer_types' has " +
                                           std::to_string(arch_config->is_recurrent.size()) + " entries, expected " +
                                           std::to_string(c.n_layer));
    }
    const Json & rope = json.contains("rope_parameters") ? json["rope_parameters"] : json;
    if (rope.is_object() && rope.contains("mrope_section") && rope["mrope_section"].is_array() &&
        rope["mrope_section"].size() <= kRopeSections) {
        arch_config->rope_sections.clear();
        for (const Json & section : rope["mrope_section"]) {
            arch_config->rope_sections.push_back(section.is_number_unsigned() ? section.get<int>() : 0);
        }
        arch_config->rope_sections.resize(kRopeSections, 0);
    }
    c.arch_config = arch_config;
}

void write_qwen35_hf(const ModelConfig & c, OrderedJson & json) {
    const Qwen35Config & arch_config = qwen35_config(c);
    json["attention_bias"]           = false;
    for (const bool recurrent : arch_config.is_recurrent) {
        json["layer_types"].push_back(recurrent ? "linear_attention" : "full_attention");
    }
    json["linear_conv_kernel_dim"] = arch_config.conv_kernel;
    json["linear_key_head_dim"]    = arch_config.state_dim;
    json["linear_value_head_dim"]  = arch_config.state_dim;
    json["linear_num_key_heads"]   = arch_config.n_key_heads;
    json["linear_num_value_heads"] = arch_config.n_value_heads;
    OrderedJson & rope             = json["rope_parameters"];
    rope["rope_type"]              = "default";
    rope["partial_rotary_factor"]  = double(c.n_rope()) / double(c.head_dim);
    rope["mrope_interleaved"]      = true;
    rope["mrope_section"] = std::vector<int>(arch_config.rope_sections.begin(), arch_config.rope_sections.begin() + 3);
}

std::string describe_qwen35(const ModelConfig & c) {
    const Qwen35Config & arch_config = qwen35_config(c);
    const auto           n_delta = std::count(arch_config.is_recurrent.begin(), arch_config.is_recurrent.end(), true);
    return std::to_string(n_delta) + " gated delta nets (" + std::to_string(arch_config.n_value_heads) + " heads of " +
           std::to_string(arch_config.state_dim) + ", " + std::to_string(arch_config.n_key_heads) + " for keys) and " +
           std::to_string(c.n_layer - n_delta) + " with gated attention";
}

} // namespace penelope
