// --init-random: a small randomly initialized Llama backbone; shape from a TOML file, a vocabulary of bytes or one
// learned from the training data.
#pragma once

#include "arch/config.h"
#include "task/example.h"
#include "text/tokenizer_data.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct RandomBackbone {
    ModelConfig config;                  // n_vocab: set by write_random_backbone
    int         n_learned_vocab = 0;     // tokens of a vocabulary to learn from the data; 0: bytes
    double      embedding_scale = 1;     // factor of the standard deviation of the embedding
    bool        lookup_heads    = false; // see train/lookup_heads.h
};

// Keys: name, layers, width, heads, kv-heads (default: heads), ffn, context, rope-base (default 10000), tied (default
// true), embedding-scale (default 1), vocab (default: bytes, no merges), lookup-heads (default false). Throws
// Error(format) naming the key that is missing, unknown or out of range.
RandomBackbone read_backbone_shape(const std::string & path);

// Normal weights with standard deviation 1/sqrt(n_in), divided by sqrt(2 n_layer) where they write to the residual
// stream; norms are 1. llama.cpp can load the file. Replaces `path`.
void write_random_backbone(const RandomBackbone & shape, uint64_t seed, const std::string & path,
                           const TokenizerData & vocabulary = byte_level_vocabulary());

// The vocabulary of the shape: bytes, or learned from prompts and targets of these examples (text/learn_bpe.h).
TokenizerData backbone_vocabulary(const RandomBackbone & shape, const std::vector<Example> & examples);

struct NewBackbone {
    RandomBackbone shape;
    TokenizerData  vocabulary;
};

// The shape, and its vocabulary; a learned one from the training examples in the directory `data`.
NewBackbone read_new_backbone(const std::string & shape_path, const std::string & data);

} // namespace penelope
