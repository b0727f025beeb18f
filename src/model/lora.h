// Reads LoRA adapters. Several files, each with a scale, are merged into one pair per weight: ranks are concatenated
// and the scale is folded into B, so any number of adapters costs one pair of small products.
#pragma once

#include "gguf/reader.h"

#include <map>
#include <string>
#include <vector>

namespace penelope {

struct HostLoraPair {
    int64_t            n_in = 0, n_out = 0, rank = 0;
    std::vector<float> a; // [n_in, rank]
    std::vector<float> b; // [rank, n_out], scale folded in
};

// Key: name of the base tensor, e.g. "blk.0.attn_q.weight".
using HostLora = std::map<std::string, HostLoraPair>;

// Adds the pairs of one file (a llama.cpp LoRA or a sidecar) to `lora`; y = W x + scale * alpha / rank * B (A x).
// allow_extra_tensors: ignore tensors that are not part of a LoRA pair. Throws Error with file and tensor.
void add_lora(HostLora & lora, const GgufReader & file, float scale, bool allow_extra_tensors);

// The tensor converted to F32. Throws Error when ggml cannot convert its type or a value is not finite.
std::vector<float> read_f32(const GgufReader & file, const GgufTensor & tensor);
// The same for rows first .. first + n - 1.
std::vector<float> read_rows(const GgufReader & file, const GgufTensor & tensor, int64_t first, int64_t n);

} // namespace penelope
