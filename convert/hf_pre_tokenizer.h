// Pre-tokenizers of byte-level BPE: how tokenizer.json defines them and what GGUF calls them.
#pragma once

#include "base/json.h"

#include <string>

namespace penelope {

// The name in GGUF. Two names share a pattern and differ in whether a piece that is a token is taken whole:
// `ignore_merges` of the model decides. Throws Error(unsupported), naming `path`, where GGUF has no name.
std::string recognize_pre_tokenizer(const Json & pre_tokenizer, bool ignore_merges, const std::string & path);

// The other direction. Throws Error(unsupported) for a name that has no definition here.
OrderedJson pre_tokenizer_json(const std::string & pre);

} // namespace penelope
