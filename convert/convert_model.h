// One conversion each for convert_directory(), and what they share.
#pragma once

#include "convert/convert.h"

namespace penelope {

FileResult convert_model(const ConvertOptions & options);    // config.json -> backbone
FileResult convert_lora(const ConvertOptions & options);     // adapter_config.json -> LoRA
FileResult convert_penelope(const ConvertOptions & options); // penelope_config.json -> sidecar

// Lists a tensor in the result and counts it.
void note_tensor(FileResult & result, const TensorJob & job, const TypeChoice & choice, ggml_type source,
                 size_t bytes_in);

} // namespace penelope
