// Text to tokens and back: byte-level BPE as Llama 3, GPT-2, SmolLM and Qwen use it, SentencePiece as Llama 2, Mistral
// and Gemma do.
//
// A Tokenizer is immutable, cheap to copy, and may be used by several threads at once. Its ids are those of the models'
// own tokenizers at Hugging Face. Qwen's put text into NFC first, and so does this one; llama.cpp does not, so its ids
// differ on decomposed text. Two small differences are on purpose: text that is not valid UTF-8 is read as U+FFFD for
// each maximal broken part, and decoding never "cleans up" spaces.
#pragma once

#include "text/tokenizer_data.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

class TokenTrie;

struct EncodeOptions {
    bool add_bos       = false; // put BOS in front if the vocabulary asks for one, see adds_bos()
    bool parse_special = false; // read control tokens written out in the text as such; else they are ordinary text
};

struct DecodeOptions {
    bool special = false; // write control tokens out; else they are left away
};

class Tokenizer {
  public:
    // Throws Error(unsupported) for a pre-tokenizer or model it does not know and Error(format) for a damaged
    // vocabulary, naming the file and the key.
    static Tokenizer from_gguf(const GgufReader & file);
    explicit Tokenizer(TokenizerData data);

    // Bytes without a token of their own (some vocabularies lack control characters) are left out: see n_unencodable().
    std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
    size_t               n_unencodable(std::string_view text) const; // bytes of text that no token stands for

    // SentencePiece puts a space in front of a text; it is taken away from the first token again.
    bool drops_first_space() const;

    // Valid UTF-8, whatever the tokens: U+FFFD where their bytes are none. Throws Error(usage) for an id out of range.
    std::string decode(const std::vector<int32_t> & ids, DecodeOptions options = {}) const;

    // The bytes of one token, of a control token its text; need not be UTF-8. These throw like decode().
    std::string token_bytes(int32_t id) const;
    std::string token_text(int32_t id) const; // as the vocabulary spells it
    TokenType   token_type(int32_t id) const;

    int32_t                n_vocab() const;
    std::optional<int32_t> bos() const;
    std::optional<int32_t> eos() const;
    std::optional<int32_t> padding() const;
    bool                   adds_bos() const; // implies bos()

    // EOS and the other tokens that end a turn or a text.
    bool                         is_end_of_generation(int32_t id) const;
    const std::vector<int32_t> & end_of_generation() const; // ascending

    // The control tokens that stand in the text, in order.
    struct ControlToken {
        size_t  begin, size;
        int32_t id;
    };
    std::vector<ControlToken> find_control_tokens(std::string_view text) const;

    // By its spelling in the vocabulary ("<|im_end|>", "\u0120the").
    std::optional<int32_t> find_token(std::string_view text) const;

    // The tokens that stand for text, by their bytes. Built on the first call: a tenth of a second for 150,000 tokens.
    const TokenTrie & trie() const;

    std::string         tokens_sha256() const; // see tokenizer_data.h
    const std::string & pre() const;
    const std::string & chat_template() const; // Jinja text, empty for none

  private:
    struct Impl;
    std::shared_ptr<const Impl> impl_;
};

} // namespace penelope
