// Whitespace at the ends of a text.
#pragma once

#include <string>
#include <string_view>

namespace penelope {

constexpr std::string_view kWhitespace = " \t\n\v\f\r";

// Without the leading and trailing characters of `blanks`.
inline std::string trim(std::string_view text, std::string_view blanks = kWhitespace) {
    const size_t first = text.find_first_not_of(blanks);
    return first == std::string_view::npos ? std::string()
                                           : std::string(text.substr(first, text.find_last_not_of(blanks) + 1 - first));
}

inline std::string trim_end(std::string_view text, std::string_view blanks = kWhitespace) {
    return std::string(text.substr(0, text.find_last_not_of(blanks) + 1));
}

inline bool is_blank(std::string_view text) {
    return text.find_first_not_of(kWhitespace) == std::string_view::npos;
}

} // namespace penelope
