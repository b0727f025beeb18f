// A PEFT LoRA directory (adapter_config.json, adapter_model.safetensors) in the terms of a llama.cpp LoRA GGUF, and
// back.
//
// llama.cpp knows one alpha per file and scales every pair by alpha / rank. PEFT has rank and alpha per module and may
// divide by sqrt(rank). The alpha that suits most pairs goes into the file; the B of any other pair is multiplied by
// what is left.
#pragma once

#include "arch/architecture.h"
#include "convert/safetensors.h"
#include "convert/tensor_stream.h"

#include <string>
#include <vector>

namespace penelope {

class GgufReader;
class OutputDir;

struct PeftPair {
    TensorSpec                base; // the weight it belongs to
    int64_t                   rank;
    const SafetensorsTensor * a;        // [rank, n_in], row-major
    const SafetensorsTensor * b;        // [n_out, rank], row-major
    float                     b_factor; // see above; 1 leaves the bytes alone
};

struct PeftLora {
    SafetensorsReader     weights;
    std::string           base_model; // base_model_name_or_path, may be empty
    float                 alpha;
    std::vector<PeftPair> pairs; // by layer and module
};

// The halves of a pair in the terms of the table: A reads what the weight reads, B writes what it writes.
TensorSpec lora_a_spec(const TensorSpec & base, int64_t rank);
TensorSpec lora_b_spec(const TensorSpec & base, int64_t rank);

PeftLora read_peft_lora(const std::string & dir, const ModelConfig & base);

// Two jobs per pair: "<base tensor>.lora_a" [n_in, rank] and "<base tensor>.lora_b" [rank, n_out]. F32, to be retyped.
std::vector<TensorJob> lora_jobs(const PeftLora & lora);

// Writes the pairs of a LoRA or sidecar GGUF as PEFT files, "<prefix>adapter_config.json" and its weights in F32.
void write_peft_lora(const GgufReader & gguf, const ModelConfig & base, const std::string & base_name, OutputDir & out,
                     const std::string & prefix);

} // namespace penelope
