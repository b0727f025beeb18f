// Trainable tensors in the terms of the PyTorch reference: PEFT's names for LoRA halves, the row order of Hugging Face.
#pragma once

#include "model/backbone.h"

#include <map>
#include <string>
#include <vector>

namespace penelope {

class HfLayout {
  public:
    explicit HfLayout(const ModelConfig & config);

    // "blk.0.attn_q.weight.lora_b" -> "model.layers.0.self_attn.q_proj.lora_B.weight"; weights of the backbone get their
    // Hugging Face names; names of modules stay.
    std::string name(const std::string & parameter) const;

    // Numbers of a parameter, or of its gradient, with rows and columns in Hugging Face's order.
    std::vector<float> values(const std::string & parameter, std::vector<float> values) const;

  private:
    std::map<std::string, TensorSpec> tensors_; // by GGUF name
};

} // namespace penelope
