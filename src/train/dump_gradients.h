// The gradients of one minibatch as a safetensors file, under the names and in the row order of the PyTorch reference.
#pragma once

#include "train/trained_model.h"

#include <string>

namespace penelope {

// `loss` and the gradient of every trainable tensor, which the optimizer holds multiplied by `scale`.
void write_gradients(const TrainedModel & model, double loss, float scale, const std::string & path, bool force);

} // namespace penelope
