// What a vocabulary has to be before anything is made of it, and what its tokens are by their text.
#pragma once

#include "text/tokenizer_data.h"

#include <optional>
#include <string>
#include <string_view>

namespace penelope {

// Throws Error(format) naming file and key.
[[noreturn]] void fail_vocabulary(const TokenizerData & data, const char * key, const std::string & why);
void              check_sizes(const TokenizerData & data);

bool is_sentencepiece(VocabularyKind kind); // scores instead of merges

// Whether a token of this text ends a turn or a text, whatever its type in the file.
bool is_end_text(std::string_view text);

std::optional<char> parse_byte_token(std::string_view text); // "<0x1F>" -> 31

} // namespace penelope
