// Backbone + LoRA -> backbone: W + alpha / rank * B A, computed in F32 and stored in the type asked for.
#pragma once

#include "convert/convert.h"

namespace penelope {

class GgufReader;

// `adapter` is a LoRA, a sidecar or a bundle; `base` a backbone or a bundle, whose sidecar tensors are left behind.
FileResult export_merged(const ExportOptions & options, const GgufReader & adapter, const GgufReader & base);

} // namespace penelope
