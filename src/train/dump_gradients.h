// --dump-gradients: the gradients of one minibatch as a safetensors file, with the names and the element order of the
// PyTorch reference.
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

    // "blk.0.attn_q.weight.lora_b" -> "model.layers.0.self_attn.q_proj.lora_B.weight". Backbone weights get their
    // Hugging Face names, module tensors keep theirs.
    std::string name(const std::string & parameter) const;

    // Permutes the values of a parameter or gradient from GGUF order to Hugging Face order.
    std::vector<float> values(const std::string & parameter, std::vector<float> values) const;

  private:
    std::map<std::string, TensorSpec> tensors_; // by GGUF name
};

// Writes `loss` and the gradient of every trainable tensor. The gradients in the optimizer are multiplied by `scale`;
// the file has them unscaled.
void write_gradients(const TrainedModel & model, double loss, float scale, const std::string & path, bool force);

} // namespace penelope
