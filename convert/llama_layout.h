// How a Llama checkpoint of Hugging Face maps to GGUF: tensor names, shapes and the row order of the q and k projections.
//
// HF rotates dimension pairs (i, i + D/2) of a head, GGUF files of this architecture rotate (2i, 2i + 1); so the rows of q
// and k (and of the B matrices of their LoRA pairs) are reordered inside each head. All other bytes are the same in both.
#pragma once

#include "convert/hf_config.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

enum class RowOrder { same, query_heads, key_heads };

// One weight matrix or vector of a layer, without its ".weight" suffix.
struct LlamaModule {
    const char * gguf; // after "blk.N."
    const char * hf;   // after "model.layers.N."
    RowOrder     order;
    bool         is_vector;
    bool         takes_lora;
};

const std::vector<LlamaModule> & llama_modules();

// Rows (outputs) and columns (inputs) of a module; columns are 0 for vectors.
struct ModuleShape {
    int64_t rows;
    int64_t columns;
};
ModuleShape llama_module_shape(const LlamaModule & module, const HfLlamaConfig & config);

// The HF row that becomes row `row` of the GGUF tensor, and its inverse; n_head heads of head_dim rows each.
int64_t hf_row_of_gguf_row(int64_t row, uint32_t head_dim);
int64_t gguf_row_of_hf_row(int64_t row, uint32_t head_dim);

// Whole-model names of a module, e.g. "blk.3.attn_q.weight" and "model.layers.3.self_attn.q_proj.weight".
std::string gguf_tensor_name(const LlamaModule & module, uint32_t layer);
std::string hf_tensor_name(const LlamaModule & module, uint32_t layer);

// The module a GGUF name such as "blk.3.attn_q.weight" belongs to, or null; `layer` receives 3.
const LlamaModule * find_gguf_module(std::string_view name, uint32_t & layer);
// The same for "model.layers.3.self_attn.q_proj" (no suffix).
const LlamaModule * find_hf_module(std::string_view name, uint32_t & layer);

} // namespace penelope
