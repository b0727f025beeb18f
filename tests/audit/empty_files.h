// Model files of known shapes that hold no numbers: a header, and a hole as long as the weights. They load like any
// other, as zeros, and take no room on the disk.
#pragma once

#include "arch/config.h"

#include <string>

namespace penelope::audit {

// The config of a shape `penelope bench --shape` knows. Throws Error(usage).
ModelConfig config_of(const std::string & shape);

// type: as `penelope quantize` takes it, and choosing the types of the tensors as it does.
void write_empty_backbone(const ModelConfig & config, const std::string & type, const std::string & path);

// Modules of the method for that backbone, and LoRA pairs beside them.
void write_empty_sidecar(const std::string & backbone, const std::string & method, const std::string & type,
                         bool has_pairs, const std::string & path);

} // namespace penelope::audit
