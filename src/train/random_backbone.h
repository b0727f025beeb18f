// --init-random: a small randomly initialized Llama backbone; shape from a TOML file, byte-level vocabulary.
#pragma once

#include "arch/config.h"

#include <cstdint>
#include <string>

namespace penelope {

struct RandomBackbone {
    ModelConfig config;              // n_vocab: byte-level vocabulary
    double      embedding_scale = 1; // factor of the standard deviation of the embedding
};

// Keys: name, layers, width, heads, kv-heads (default: heads), ffn, context, rope-base (default 10000), tied (default
// true), embedding-scale (default 1). Throws Error(format) naming the key that is missing, unknown or out of range.
RandomBackbone read_backbone_shape(const std::string & path);

// Normal weights with standard deviation 1/sqrt(n_in), divided by sqrt(2 n_layer) where they write to the residual
// stream; norms are 1. llama.cpp can load the file. Replaces `path`.
void write_random_backbone(const RandomBackbone & shape, uint64_t seed, const std::string & path);

} // namespace penelope
