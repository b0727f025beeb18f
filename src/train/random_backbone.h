// A small backbone made from nothing: shape from a TOML file, byte-level vocabulary, random weights.
#pragma once

#include "arch/config.h"

#include <cstdint>
#include <string>

namespace penelope {

struct RandomBackbone {
    ModelConfig config;              // n_vocab is that of the byte-level vocabulary
    double      embedding_scale = 1; // of the embedding's deviation
};

// Keys: name, layers, width, heads, kv-heads (default: heads), ffn, context, rope-base (default 10000), tied (default true),
// embedding-scale (default 1).
// Throws Error(format) naming the key that is missing, unknown or out of range.
RandomBackbone read_backbone_shape(const std::string & path);

// Weights normal with deviation 1/sqrt(n_in), those that write into the residual stream divided by sqrt(2 layers); norms one. The file
// is a plain backbone that llama.cpp loads. Replaces `path`.
void write_random_backbone(const RandomBackbone & shape, uint64_t seed, const std::string & path);

} // namespace penelope
