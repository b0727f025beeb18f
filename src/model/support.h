// Whether this program can run a model file: says all at once what is missing, and what there is instead.
#pragma once

#include <optional>
#include <string>

namespace penelope {

class GgufReader;

struct Unsupported {
    std::string what;      // "architecture 'mamba', tokenizer 'bert'"
    std::string supported; // "supported are architectures: llama, ...; tokenizers: gpt2, ..."
};

// nullopt if architecture, tokenizer and tensor types are known. Keys that are wrong otherwise are not looked at.
std::optional<Unsupported> find_unsupported(const GgufReader & file);

// Throws Error(unsupported) with the same words: "FILE: not supported: architecture 'mamba'".
void require_supported(const GgufReader & file);

} // namespace penelope
