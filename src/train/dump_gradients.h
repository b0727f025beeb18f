// The gradients of one minibatch as a safetensors file, under the names and in the row order of the PyTorch reference.
#pragma once

#include "train/trained_model.h"

#include <map>
#include <string>
#include <vector>

namespace penelope {

// Names and element order of Hugging Face and PEFT for trainable tensors.
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

// `loss` and the gradient of every trainable tensor, which the optimizer holds multiplied by `scale`.
void write_gradients(const TrainedModel & model, double loss, float scale, const std::string & path, bool force);

} // namespace penelope
