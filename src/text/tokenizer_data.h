// The plain content of a byte-level BPE tokenizer, as GGUF stores it: read from a file, written to one, or made by the
// converter and the trainer. Nothing here is checked; Tokenizer's constructor does that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;
class GgufWriter;

enum class TokenType : int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// Whether a token stands for no text of its own: decoding leaves it away unless asked.
inline bool is_special(TokenType type) {
    return type == TokenType::control || type == TokenType::unknown || type == TokenType::unused;
}

struct TokenizerData {
    std::string              source; // where it comes from, for messages: a path
    std::string              pre;    // name of the pre-tokenizer, see pre_tokenizer.h
    std::vector<std::string> tokens; // in the byte alphabet; special ones as they stand in text
    std::vector<TokenType>   types;  // one per token; empty: all normal
    std::vector<std::string> merges; // "left right", best first
    std::optional<int32_t>   bos, eos, eot, eom, unknown, padding; // eot, eom: further ends of generation
    std::optional<bool>      add_bos;                              // absent: as the pre-tokenizer implies
    std::string              chat_template;                        // Jinja text, empty for none
};

// Throws Error for a missing or mistyped key and for a tokenizer that is not byte-level BPE.
TokenizerData read_tokenizer_data(const GgufReader & file);

// Sets every tokenizer key of a model file.
void write_tokenizer_data(GgufWriter & file, const TokenizerData & data);

// A vocabulary for a model made from nothing: token b is byte b, 256 is <|begin_of_text|>, 257 is <|end_of_text|>.
// No merges, pre-tokenizer gpt-2; BOS is added.
TokenizerData byte_level_vocabulary();

// What a vocabulary is told from others by: SHA-256, in lower-case hexadecimal, over all tokens in order as GGUF stores
// them, each followed by a zero byte. Kept in sidecars as penelope.base.tokens_sha256.
std::string tokens_sha256(const std::vector<std::string> & tokens);

} // namespace penelope
