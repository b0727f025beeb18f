// The byte-level BPE tokenizer of a Hugging Face checkpoint, as GGUF keys.
//
// Input: tokenizer.json, tokenizer_config.json, special_tokens_map.json and chat_template.* of a directory. Output:
// HfTokenizer, and the tokenizer.* keys. The pre-tokenizer is recognised by its definition; one that GGUF has no name for is
// an Error, since a file with the wrong splits would load and answer nonsense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penelope {

class GgufWriter;
struct HfLlamaConfig;

struct HfTokenizer {
    std::string              pre;         // GGUF's name of the split pattern: "llama-bpe", "smollm", ...
    std::vector<std::string> tokens;      // n_vocab, gaps filled with "[PADi]"
    std::vector<int32_t>     token_types; // GGUF token types
    std::vector<std::string> merges;      // "left right"

    std::optional<int32_t> bos;
    std::optional<int32_t> eos;
    std::optional<int32_t> eot; // further ids that end a turn
    std::optional<int32_t> eom;
    std::optional<int32_t> pad;
    std::optional<int32_t> unk;
    bool                   add_bos = false;

    std::string                                      chat_template; // may be empty
    std::vector<std::pair<std::string, std::string>> named_templates;
};

// `config` supplies the vocabulary size and the ids the tokenizer files leave out.
HfTokenizer read_hf_tokenizer(const std::string & dir, const HfLlamaConfig & config);

void write_tokenizer_keys(GgufWriter & writer, const HfTokenizer & tokenizer);

} // namespace penelope
