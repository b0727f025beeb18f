// The decoder layer of Llama, for architectures that differ from it in numbers only.
#pragma once

#include "arch/architecture.h"

namespace penelope {

std::unique_ptr<Layer> make_llama_layer(const ModelConfig & config, int il);

// Throws Error(unsupported) if the checkpoint has biases; write says that there are none.
void refuse_hf_biases(const Json & json, const std::string & path);
void write_hf_no_biases(OrderedJson & json);

} // namespace penelope
