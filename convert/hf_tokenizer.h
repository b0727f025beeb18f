// The tokenizer of a Hugging Face checkpoint, byte-level BPE or SentencePiece's BPE, as GGUF keys.
//
// Input: tokenizer.json, tokenizer_config.json, special_tokens_map.json and chat_template.* of a directory. Output:
// HfTokenizer, and the tokenizer.* keys. The pre-tokenizer is recognised by its definition; one that GGUF has no name
// for is an Error, since a file with the wrong splits would load and answer nonsense.
#pragma once

#include "text/tokenizer_data.h"

#include <string>
#include <utility>
#include <vector>

namespace penelope {

class GgufWriter;
struct HfConfig;

struct HfTokenizer {
    TokenizerData                                    data;            // n_vocab tokens, gaps filled with "[PADi]"
    std::vector<std::pair<std::string, std::string>> named_templates; // chat templates besides the default one
};

// `config` supplies the vocabulary size and the ids the tokenizer files leave out.
HfTokenizer read_hf_tokenizer(const std::string & dir, const HfConfig & config);

void write_tokenizer_keys(GgufWriter & writer, const HfTokenizer & tokenizer);

} // namespace penelope
