// Which tokenizers this program has, by their names in GGUF files.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;

std::vector<std::string> tokenizer_models();    // values of tokenizer.ggml.model: "gpt2", ...
std::vector<std::string> pre_tokenizer_names(); // values of tokenizer.ggml.pre: "llama-bpe", ...

struct MissingTokenizer {
    std::string what;      // "tokenizer 'bert'", "pre-tokenizer 'poro-chat'"
    std::string supported; // "tokenizers: gpt2, ..."
};

// nullopt if the file's tokenizer can be read, or if it has none.
std::optional<MissingTokenizer> missing_tokenizer(const GgufReader & file);

} // namespace penelope
