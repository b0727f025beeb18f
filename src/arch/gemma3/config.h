// The hyperparameters of Gemma 3 in GGUF and at Hugging Face.
#pragma once

#include "arch/architecture.h"

namespace penelope {

void        read_gemma3_gguf(const GgufReader & file, ModelConfig & c);
void        write_gemma3_gguf(GgufWriter & writer, const ModelConfig & c);
void        read_gemma3_hf(const Json & json, const std::string & path, ModelConfig & c);
void        write_gemma3_hf(const ModelConfig & c, OrderedJson & json);
std::string describe_gemma3(const ModelConfig & c);
KnownShape  gemma3_shape(const char * name, int n_layer, int n_embd, int n_ff);

} // namespace penelope
