// Backbone GGUF -> Hugging Face checkpoint in F32, so that people can go back to PyTorch. Converting the result again
// gives the same weights.
#pragma once

#include "convert/convert.h"
#include "convert/hf_config.h"

#include <vector>

namespace penelope {

class GgufReader;
class OutputDir;
struct TokenizerData;

FileResult export_hf(const ExportOptions & options, const GgufReader & backbone);

// Finds the scaling that gives the stored divisors. They fix it up to a common factor of its two limits and the context
// length, for which the published value 1 of low_freq_factor is taken. Throws Error(unsupported) when there is none.
Llama3RopeScaling recover_llama3_scaling(const std::vector<float> & factors, double theta, int n_dims);

// tokenizer.json and tokenizer_config.json.
void write_hf_tokenizer(const TokenizerData & tokenizer, uint32_t n_context, OutputDir & out);

} // namespace penelope
