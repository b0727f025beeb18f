// A Penelope directory (penelope.safetensors, penelope_config.json, optionally lora/ with a PEFT adapter): how the
// modules travel to and from PyTorch. Tensors have the names of the GGUF file and are row-major [out, in].
#pragma once

#include "base/json.h"
#include "convert/safetensors.h"
#include "convert/tensor_stream.h"
#include "sidecar/sidecar.h"

#include <string>
#include <vector>

namespace penelope {

// Base fields the JSON leaves out are taken from `base`; those it states must agree with it.
SidecarConfig parse_penelope_config(const Json & config, const BaseInfo & base, const std::string & path);
OrderedJson   penelope_config_json(const SidecarConfig & config);

// One job per module tensor, F32, to be retyped. A missing, misshapen or unknown tensor is an Error naming it.
std::vector<TensorJob> module_jobs(const SafetensorsReader & weights, const SidecarConfig & config);

} // namespace penelope
