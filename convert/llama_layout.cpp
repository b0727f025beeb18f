#include "convert/llama_layout.h"

#include <charconv>

namespace penelope {

namespace {

// "<prefix>12.<rest>" -> 12 and rest; false when it has another form.
bool split_layer(std::string_view name, std::string_view prefix, uint32_t & layer, std::string_view & rest) {
    if (name.substr(0, prefix.size()) != prefix) {
        return false;
    }
    name.remove_prefix(prefix.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    const size_t digits     = size_t(end - name.data());
    if (error != std::errc() || digits >= name.size() || name[digits] != '.' || (name[0] == '0' && digits > 1)) {
        return false;
    }
    rest = name.substr(digits + 1);
    return true;
}

constexpr std::string_view k_weight = ".weight";

} // namespace

const std::vector<LlamaModule> & llama_modules() {
    static const std::vector<LlamaModule> modules = {
        { "attn_norm", "input_layernorm", RowOrder::same, true, false },
        { "attn_q", "self_attn.q_proj", RowOrder::query_heads, false, true },
        { "attn_k", "self_attn.k_proj", RowOrder::key_heads, false, true },
        { "attn_v", "self_attn.v_proj", RowOrder::same, false, true },
        { "attn_output", "self_attn.o_proj", RowOrder::same, false, true },
        { "ffn_norm", "post_attention_layernorm", RowOrder::same, true, false },
        { "ffn_gate", "mlp.gate_proj", RowOrder::same, false, true },
        { "ffn_up", "mlp.up_proj", RowOrder::same, false, true },
        { "ffn_down", "mlp.down_proj", RowOrder::same, false, true },
    };
    return modules;
}

ModuleShape llama_module_shape(const LlamaModule & module, const HfLlamaConfig & config) {
    const int64_t          d       = config.n_embd;
    const int64_t          queries = int64_t(config.n_head) * config.head_dim;
    const int64_t          keys    = int64_t(config.n_head_kv) * config.head_dim;
    const std::string_view name    = module.gguf;
    if (module.is_vector) {
        return { d, 0 };
    }
    if (name == "attn_q") {
        return { queries, d };
    }
    if (name == "attn_k" || name == "attn_v") {
        return { keys, d };
    }
    if (name == "attn_output") {
        return { d, queries };
    }
    if (name == "ffn_down") {
        return { d, config.n_ff };
    }
    return { config.n_ff, d };
}

int64_t hf_row_of_gguf_row(int64_t row, uint32_t head_dim) {
    const int64_t i = row % head_dim;
    return row - i + (i % 2) * (head_dim / 2) + i / 2;
}

int64_t gguf_row_of_hf_row(int64_t row, uint32_t head_dim) {
    const int64_t i    = row % head_dim;
    const int64_t half = head_dim / 2;
    return row - i + 2 * (i % half) + i / half;
}

std::string gguf_tensor_name(const LlamaModule & module, uint32_t layer) {
    return "blk." + std::to_string(layer) + "." + module.gguf + ".weight";
}

std::string hf_tensor_name(const LlamaModule & module, uint32_t layer) {
    return "model.layers." + std::to_string(layer) + "." + module.hf + ".weight";
}

const LlamaModule * find_gguf_module(std::string_view name, uint32_t & layer) {
    std::string_view rest;
    if (!split_layer(name, "blk.", layer, rest) || rest.size() <= k_weight.size() ||
        rest.substr(rest.size() - k_weight.size()) != k_weight) {
        return nullptr;
    }
    rest.remove_suffix(k_weight.size());
    for (const auto & module : llama_modules()) {
        if (rest == module.gguf) {
            return &module;
        }
    }
    return nullptr;
}

const LlamaModule * find_hf_module(std::string_view name, uint32_t & layer) {
    std::string_view rest;
    if (!split_layer(name, "model.layers.", layer, rest)) {
        return nullptr;
    }
    for (const auto & module : llama_modules()) {
        if (rest == module.hf) {
            return &module;
        }
    }
    return nullptr;
}

} // namespace penelope
