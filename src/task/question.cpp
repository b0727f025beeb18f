#include "task/question.h"

namespace penelope {

namespace {

bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

} // namespace

std::string normalize_text(const std::string & question) {
    std::string text;
    bool        gap = false;
    for (const char c : question) {
        if (is_space(c)) {
            gap = !text.empty();
            continue;
        }
        if (gap) {
            text += ' ';
            gap = false;
        }
        text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return text;
}

std::string normalize_bracketed(const std::string & question) {
    const std::string spaced     = normalize_text(question);
    const auto        is_bracket = [](char c) { return c == '[' || c == ']'; };
    std::string       text;
    for (size_t i = 0; i < spaced.size(); ++i) {
        // A normalized text neither begins nor ends with a space, so both neighbours exist.
        if (spaced[i] != ' ' || (!is_bracket(spaced[i - 1]) && !is_bracket(spaced[i + 1]))) {
            text += spaced[i];
        }
    }
    return text;
}

} // namespace penelope
