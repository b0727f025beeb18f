// The plain content of a tokenizer, as GGUF stores it: read from a file, written to one, or made by the
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

// How text is cut into tokens, by the name in GGUF.
enum class VocabularyKind {
    byte_bpe, // "gpt2": merges over the byte alphabet
    char_bpe, // "gemma4": merges over characters, U+2581 for spaces
    spm_bpe,  // "llama": SentencePiece's BPE, by scores
    unigram,  // "t5": SentencePiece's unigram
};

struct TokenizerData {
    std::string    source; // where it comes from, for messages: a path
    VocabularyKind kind = VocabularyKind::byte_bpe;
    std::string    pre; // name of the pre-tokenizer, see pre_tokenizer.h
    std::vector<std::string>
        tokens; // of byte_bpe in the byte alphabet, else with U+2581 for spaces; special ones as in text
    std::vector<TokenType>   types;                                // one per token; empty: all normal
    std::vector<std::string> merges;                               // "left right", best first
    std::vector<float>       scores;                               // of spm_bpe and unigram, one per token
    std::optional<bool>      add_space_prefix;                     // of spm_bpe and unigram; absent: yes
    bool                     merges_spaces = false;                // of unigram: several spaces count as one
    std::optional<int32_t>   bos, eos, eot, eom, unknown, padding; // eot, eom: further ends of generation
    std::optional<bool>      add_bos;                              // absent: as the pre-tokenizer implies
    std::string              chat_template;                        // Jinja text, empty for none
};

// Throws Error for a missing or mistyped key and for a tokenizer of another kind.
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
