// SentencePiece's two ways to cut text into tokens, by scores instead of ranked merges. Text is UTF-8 with U+2581 for
// each space.
//
// BPE ("llama" in GGUF): of all neighbours that together are a token, the pair of the highest score is joined first,
// the leftmost among equals, until none is left. Unigram ("t5"): of all ways to cut the text, the one whose scores have
// the greatest sum. A character that is no token becomes its bytes (<0x1F>), or the unknown token where the vocabulary
// has none.
#pragma once

#include "text/string_table.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

// U+2581 for a space, and back.
std::string escape_spaces(std::string_view text);
std::string unescape_spaces(std::string_view text);

class SentencePieces {
  public:
    SentencePieces() = default;
    // scores: of every token; usable: those that text may become.
    SentencePieces(std::vector<float> scores, std::vector<bool> usable, const std::array<int32_t, 256> & byte_tokens,
                   std::optional<int32_t> unknown);

    // Both append to out. texts: the tokens as the vocabulary spells them.
    void encode_bpe(const StringTable & texts, std::string_view text, std::vector<int32_t> & out) const;
    void encode_unigram(const StringTable & texts, std::string_view text, std::vector<int32_t> & out) const;
    // The tokens of a character that is none itself.
    void fall_back(std::string_view character, std::vector<int32_t> & out) const;

  private:
    int32_t find(const StringTable & texts, std::string_view text) const; // -1 for none

    std::vector<float>       scores_;
    std::vector<bool>        usable_;
    std::array<int32_t, 256> byte_tokens_{};
    std::optional<int32_t>   unknown_;
    float                    unknown_score_ = 0;  // below every token's
    size_t                   longest_       = 64; // bytes of a token
};

} // namespace penelope
