#include "train/exchange.h"

#include "convert/llama_layout.h"

#include <algorithm>

namespace penelope {

namespace {

struct Half {
    std::string base;   // "blk.0.attn_q.weight"
    std::string suffix; // ".lora_a", ".lora_b" or empty
};

Half split(const std::string & parameter) {
    const size_t dot = parameter.rfind(".lora_");
    return dot == std::string::npos ? Half{ parameter, "" } : Half{ parameter.substr(0, dot), parameter.substr(dot) };
}

} // namespace

std::string exchange_name(const std::string & parameter) {
    const Half          half   = split(parameter);
    uint32_t            layer  = 0;
    const LlamaModule * module = find_gguf_module(half.base, layer);
    if (!module) {
        return half.base == "token_embd.weight"    ? "model.embed_tokens.weight"
               : half.base == "output_norm.weight" ? "model.norm.weight"
               : half.base == "output.weight"      ? "lm_head.weight"
                                                   : parameter;
    }
    const std::string name = hf_tensor_name(*module, layer); // ends in ".weight"
    if (half.suffix.empty()) {
        return name;
    }
    return name.substr(0, name.rfind('.')) + (half.suffix == ".lora_a" ? ".lora_A.weight" : ".lora_B.weight");
}

std::vector<float> exchange_values(const std::string & parameter, const ModelConfig & config,
                                   std::vector<float> values) {
    const Half          half   = split(parameter);
    uint32_t            layer  = 0;
    const LlamaModule * module = find_gguf_module(half.base, layer);
    if (!module || module->order == RowOrder::same || half.suffix == ".lora_a") {
        return values;
    }
    const int64_t      n_rows = module->order == RowOrder::query_heads ? config.n_embd_q() : config.n_embd_kv();
    const int64_t      width  = int64_t(values.size()) / n_rows;
    std::vector<float> ordered(values.size());
    for (int64_t row = 0; row < n_rows; row++) {
        const int64_t from = gguf_row_of_hf_row(row, uint32_t(config.head_dim));
        std::copy_n(values.begin() + ptrdiff_t(from * width), width, ordered.begin() + ptrdiff_t(row * width));
    }
    return ordered;
}

} // namespace penelope
