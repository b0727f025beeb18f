// Trainable tensors in the terms of the PyTorch reference: PEFT's names for LoRA halves, the row order of Hugging Face.
#pragma once

#include "model/config.h"

#include <string>
#include <vector>

namespace penelope {

// "blk.0.attn_q.weight.lora_b" -> "model.layers.0.self_attn.q_proj.lora_B.weight"; weights of the backbone get their Hugging
// Face names; names of modules stay.
std::string exchange_name(const std::string & parameter);

// Values of a parameter with the rows of the q and k projections in Hugging Face's order.
std::vector<float> exchange_values(const std::string & parameter, const ModelConfig & config,
                                   std::vector<float> values);

} // namespace penelope
