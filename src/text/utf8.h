// UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Bytes that break the rules are
// replaced by U+FFFD, one for each maximal part of a character that is well formed as far as it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penelope {

// The bytes of U+FFFD.
constexpr std::string_view utf8_replacement = "\xEF\xBF\xBD";

enum class Utf8State {
    whole,     // a well-formed character
    broken,    // bytes no continuation could make well formed
    unfinished // the text ends inside a character that is well formed so far
};

struct Utf8Unit {
    size_t    size; // bytes, at least 1
    Utf8State state;
};

// The unit that starts at text[pos]; pos < text.size().
Utf8Unit next_utf8_unit(std::string_view text, size_t pos);

// The bytes of a code point that is no surrogate, and the code point of one whole character.
std::string utf8_text(uint32_t code_point);
uint32_t    code_point(std::string_view character);

// The length of the longest prefix of whole characters.
size_t valid_utf8_prefix(std::string_view text);

// Appends text with everything that is not a whole character replaced.
void append_valid_utf8(std::string & out, std::string_view text);

} // namespace penelope
