// Lookup heads: two attention heads of a new backbone that can find what follows a token elsewhere in the text before
// anything is learned.
//
// Steps of reasoning look things up in the question. Random layers need thousands of examples before they begin to, and
// on long questions they may not begin at all. These heads do it from the start (the "induction heads" that trained
// models have):
//
//   head 0 of layer 0   attends to the token before and copies its code into the residual stream
//   head 0 of layer 1   attends to where the token before is this one, and copies the code of the token there
//   output              raises the logits of the token with that code
//
// The code of a token is a few coordinates of its random embedding. All of it is an initial value: training goes on
// from there with every weight free. Rotary positions: the first head uses the fastest pairs, the second the slowest.
#pragma once

#include "train/random_backbone.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

// Whether the shape has room for them: two layers, and heads of 8 to two thirds of the width.
bool has_room_for_lookup_heads(const ModelConfig & config);

// Writes their part into the random values of a tensor. embedding: what this function made of token_embd.weight.
void set_lookup_heads(const RandomBackbone & shape, const std::string & tensor, const std::vector<float> & embedding,
                      std::vector<float> & values);

} // namespace penelope
