// One conversion each for convert_directory(), and what they share.
#pragma once

#include "convert/convert.h"

namespace penelope {

FileResult convert_model(const ConvertOptions & options);    // config.json -> backbone
FileResult convert_lora(const ConvertOptions & options);     // adapter_config.json -> LoRA
FileResult convert_penelope(const ConvertOptions & options); // penelope_config.json -> sidecar

// Lists a tensor in the result and counts it.
void record_tensor(FileResult & result, const TensorJob & job, const TypeChoice & choice, ggml_type source,
                   size_t bytes_in);

// The type that most elements of the listed tensors have, in upper case: what a file of mixed types is called by.
std::string most_frequent_type(const FileResult & result);

} // namespace penelope
