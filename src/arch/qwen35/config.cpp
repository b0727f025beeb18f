#include "arch/qwen35/config.h"

#include "base/error.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr int kDefaultInterval = 4;
constexpr int kMostKernel      = 1 << 10;
constexpr int kMostStateWidth  = 1 << 12;
constexpr int kMostHeads       = 1 << 12;
constexpr int kRopeSections    = 4;

// Layer i is a delta net unless it ends a group of `interval`.
std::vector<bool> by_interval(int n_layer, int interval) {
    std::vector<bool> recurrent;
    for (int il = 0; il < n_layer; il++) {
        recurrent.push_back((il + 1) % interval != 0);
    }
    return recurrent;
}

// Empty when all is well.
std::string impossible(const Qwen35Config & own) {
    if (own.n_value_heads % own.n_key_heads != 0) {
        return std::to_string(own.n_value_heads) + " value heads of the delta net, expected a multiple of its " +
               std::to_string(own.n_key_heads) + " key heads";
    }
    if (own.conv_kernel < 2 || own.conv_kernel > 16) {
        return "a convolution over " + std::to_string(own.conv_kernel) + " rows, expected 2 to 16";
    }
    if (own.state_dim % 2 != 0) {
        return "delta heads of the odd width " + std::to_string(own.state_dim) + ", expected an even one";
    }
    return "";
}

} // namespace

const Qwen35Config & qwen35_config(const ModelConfig & config) {
    return static_cast<const Qwen35Config &>(*config.own);
}

void read_qwen35_gguf(const GgufReader & file, ModelConfig & c) {
    const auto key         = [&](const char * name) { return keys::arch(c.architecture, name); };
    auto       own         = std::make_shared<Qwen35Config>();
    own->conv_kernel       = get_bounded(file, key(keys::ssm_conv_kernel), kMostKernel);
    own->state_dim         = get_bounded(file, key(keys::ssm_state_size), kMostStateWidth);
    own->n_key_heads       = get_bounded(file, key(keys::ssm_group_count), kMostHeads);
    own->n_value_heads     = get_bounded(file, key(keys::ssm_time_step_rank), kMostHeads);
    const int n_inner      = get_bounded(file, key(keys::ssm_inner_size), 1 << 24);
    const int n_predicting = int(file.find_u32(key(keys::nextn_predict_layers)).value_or(0));
    const int n_blocks     = c.n_layer;
    require(n_inner == own->n_value_features(), file,
            key(keys::ssm_inner_size) + " is " + std::to_string(n_inner) + ", expected " +
                std::to_string(own->n_value_features()) + ", value heads times state size");
    require(impossible(*own).empty(), file, impossible(*own));
    require(n_predicting >= 0 && n_predicting < n_blocks, file,
            key(keys::nextn_predict_layers) + " leaves no layer to run");
    c.n_layer -= n_predicting;
    c.n_left_out = n_predicting;

    if (const auto kinds = file.find_i32_array(key(keys::recurrent_layers))) {
        require(int(kinds->size()) == n_blocks, file,
                key(keys::recurrent_layers) + " has " + std::to_string(kinds->size()) + " entries, expected " +
                    std::to_string(n_blocks));
        own->is_recurrent.assign(kinds->begin(), kinds->begin() + c.n_layer);
    } else {
        const uint32_t interval = file.find_u32(key(keys::full_attention_interval)).value_or(kDefaultInterval);
        require(interval > 0, file, key(keys::full_attention_interval) + " is 0, expected 1 or more");
        own->is_recurrent = by_interval(c.n_layer, int(interval));
    }
    if (const auto sections = file.find_i32_array(key(keys::rope_dimension_sections))) {
        require(sections->size() == kRopeSections, file,
                key(keys::rope_dimension_sections) + " has " + std::to_string(sections->size()) +
                    " entries, expected " + std::to_string(kRopeSections));
        own->rope_sections.assign(sections->begin(), sections->end());
    }
    c.own = own;
}

void write_qwen35_gguf(GgufWriter & writer, const ModelConfig & c) {
    const auto           key = [&](const char * name) { return keys::arch(c.architecture, name); };
    const Qwen35Config & own = qwen35_config(c);
    writer.set_u32(key(keys::ssm_conv_kernel), uint32_t(own.conv_kernel));
    writer.set_u32(key(keys::ssm_state_size), uint32_t(own.state_dim));
    writer.set_u32(key(keys::ssm_group_count), uint32_t(own.n_key_heads));
    writer.set_u32(key(keys::ssm_time_step_rank), uint32_t(own.n_value_heads));
    writer.set_u32(key(keys::ssm_inner_size), uint32_t(own.n_value_features()));
    writer.set_i32_array(key(keys::rope_dimension_sections), { own.rope_sections.begin(), own.rope_sections.end() });
    // An interval says it in a form every reader knows; only other patterns need the list.
    for (int interval = 1; interval <= c.n_layer + 1; interval++) {
        if (own.is_recurrent == by_interval(c.n_layer, interval)) {
            writer.set_u32(key(keys::full_attention_interval), uint32_t(interval));
            return;
        }
    }
    writer.set_bool_array(key(keys::recurrent_layers), own.is_recurrent);
}

void read_qwen35_hf(const Json & json, const std::string & path, ModelConfig & c) {
    auto       own   = std::make_shared<Qwen35Config>();
    const auto count = [&](const char * field, int most) {
        const int64_t value = json_get<int64_t>(json, field, path);
        if (value < 1 || value > most) {
            throw Error(ErrorKind::format, path + ": '" + field + "' is " + std::to_string(value) + ", expected 1 to " +
                                               std::to_string(most));
        }
        return int(value);
    };
    own->conv_kernel   = count("linear_conv_kernel_dim", kMostKernel);
    own->state_dim     = count("linear_key_head_dim", kMostStateWidth);
    own->n_key_heads   = count("linear_num_key_heads", kMostHeads);
    own->n_value_heads = count("linear_num_value_heads", kMostHeads);
    if (count("linear_value_head_dim", kMostStateWidth) != own->state_dim) {
        throw Error(ErrorKind::unsupported, path + ": 'linear_value_head_dim' differs from 'linear_key_head_dim'");
    }
    if (!impossible(*own).empty()) {
        throw Error(ErrorKind::format, path + ": " + impossible(*own));
    }
    if (json_find<bool>(json, "attention_bias", path).value_or(false)) {
        throw Error(ErrorKind::unsupported, path + ": attention_bias is not supported");
    }
    if (json.contains("layer_types") && json["layer_types"].is_array()) {
        for (const Json & type : json["layer_types"]) {
            if (type != "linear_attention" && type != "full_attention") {
                throw Error(ErrorKind::unsupported, path + ": layer type " + dump_json(type) + " is not supported");
            }
            own->is_recurrent.push_back(type == "linear_attention");
        }
    } else {
        const int64_t interval = json_find<int64_t>(json, "full_attention_interval", path).value_or(kDefaultInterval);
        own->is_recurrent      = by_interval(c.n_layer, int(std::clamp<int64_t>(interval, 1, c.n_layer + 1)));
    }
    if (int(own->is_recurrent.size()) != c.n_layer) {
        throw Error(ErrorKind::format, path + ": 'layer_types' has " + std::to_string(own->is_recurrent.size()) +
                                           " entries, expected " + std::to_string(c.n_layer));
    }
    const Json & rope = json.contains("rope_parameters") ? json["rope_parameters"] : json;
    if (rope.is_object() && rope.contains("mrope_section") && rope["mrope_section"].is_array() &&
        rope["mrope_section"].size() <= kRopeSections) {
        own->rope_sections.clear();
        for (const Json & section : rope["mrope_section"]) {
            own->rope_sections.push_back(section.is_number_unsigned() ? section.get<int>() : 0);
        }
        own->rope_sections.resize(kRopeSections, 0);
    }
    c.own = own;
}

void write_qwen35_hf(const ModelConfig & c, OrderedJson & json) {
    const Qwen35Config & own = qwen35_config(c);
    json["attention_bias"]   = false;
    for (const bool recurrent : own.is_recurrent) {
        json["layer_types"].push_back(recurrent ? "linear_attention" : "full_attention");
    }
    json["linear_conv_kernel_dim"] = own.conv_kernel;
    json["linear_key_head_dim"]    = own.state_dim;
    json["linear_value_head_dim"]  = own.state_dim;
    json["linear_num_key_heads"]   = own.n_key_heads;
    json["linear_num_value_heads"] = own.n_value_heads;
    OrderedJson & rope             = json["rope_parameters"];
    rope["rope_type"]              = "default";
    rope["partial_rotary_factor"]  = double(c.n_rope()) / double(c.head_dim);
    rope["mrope_interleaved"]      = true;
    rope["mrope_section"]          = std::vector<int>(own.rope_sections.begin(), own.rope_sections.begin() + 3);
}

std::string describe_qwen35(const ModelConfig & c) {
    const Qwen35Config & own     = qwen35_config(c);
    const auto           n_delta = std::count(own.is_recurrent.begin(), own.is_recurrent.end(), true);
    return std::to_string(n_delta) + " gated delta nets (" + std::to_string(own.n_value_heads) + " heads of " +
           std::to_string(own.state_dim) + ", " + std::to_string(own.n_key_heads) + " for keys) and " +
           std::to_string(c.n_layer - n_delta) + " with gated attention";
}

} // namespace penelope
