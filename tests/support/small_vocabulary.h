// A vocabulary whose merges a test chooses.
#pragma once

#include "text/tokenizer.h"

#include <string>
#include <vector>

namespace penelope::test {

constexpr int32_t bos_id = 256, eos_id = 257, user_id = 258; // then one id per merge, from 259

// The byte vocabulary, a user-defined token and the results of the merges.
inline TokenizerData small_vocabulary(const std::vector<std::string> & merges = {}, const std::string & pre = "gpt-2") {
    TokenizerData data = byte_level_vocabulary();
    data.source        = "small.gguf";
    data.pre           = pre;
    data.tokens.push_back("<user>");
    data.types.push_back(TokenType::user_defined);
    for (const std::string & merge : merges) {
        const size_t space = merge.find(' ', 1);
        data.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
        data.types.push_back(TokenType::normal);
        data.merges.push_back(merge);
    }
    return data;
}

} // namespace penelope::test
