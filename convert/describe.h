// What a file is, for people and for programs: `penelope info`.
//
// Input: a GGUF file (backbone, LoRA, sidecar, bundle). Output: one JSON object and a text of a screenful that says
// what the file is, what it fits, how much memory it needs at which context, and, for a sidecar, K, interval, task and
// stored results.
#pragma once

#include "base/json.h"

#include <string>

namespace penelope {

struct FileDescription {
    OrderedJson json; // kind, path, architecture, type, size, metadata, parameters, memory, ...; tensors if asked for
    std::string text; // whole lines
};

FileDescription describe_file(const std::string & path, bool with_tensors);

} // namespace penelope
