#include "tools/call_body.h"

#include <algorithm>

namespace penelope {

bool is_tool(const std::vector<Tool> & tools, std::string_view name) {
    return std::any_of(tools.begin(), tools.end(), [&](const Tool & tool) { return tool.name == name; });
}

TextCursor::Match TextCursor::skip(std::string_view word) {
    const std::string_view next = text_.substr(pos_, word.size());
    if (next == word) {
        pos_ += word.size();
        return Match::yes;
    }
    return word.substr(0, next.size()) == next ? Match::more : Match::no;
}

void TextCursor::skip_spaces() {
    pos_ = std::min(text_.find_first_not_of(" \t\r\n", pos_), text_.size());
}

} // namespace penelope
