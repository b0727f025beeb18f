#include "word_wrap.h"

#include "text/utf8.h"

#include <cwchar>

namespace penelope {

namespace {

constexpr size_t tab_width = 8;

// What the terminal gives it; one column where the locale does not know.
size_t width_of(std::string_view character) {
    const int width = wcwidth(static_cast<wchar_t>(code_point(character)));
    return width < 0 ? 1 : static_cast<size_t>(width);
}

} // namespace

WordWrap::WordWrap(std::function<void(std::string_view)> write, std::function<size_t()> columns)
    : write_(std::move(write)), columns_(std::move(columns)) {}

void WordWrap::flush_word() {
    if (word_.empty()) {
        return;
    }
    if (first_word_ && word_.compare(0, 3, "```") == 0) {
        in_code_ = !in_code_;
    }
    first_word_ = false;
    size_t gap  = 0;
    for (const char c : spaces_) {
        gap += c == '\t' ? tab_width - (column_ + gap) % tab_width : 1;
    }
    if (!in_code_ && column_ > 0 && column_ + gap + word_width_ > columns_()) {
        write_("\n");
        column_ = 0;
    } else {
        write_(spaces_);
        column_ += gap;
    }
    write_(word_);
    column_ += word_width_;
    if (!in_code_ && column_ > columns_()) {
        column_ %= columns_(); // longer than a line: the terminal broke it
    }
    spaces_.clear();
    word_.clear();
    word_width_ = 0;
}

void WordWrap::feed(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const std::string_view character = text.substr(i, next_utf8_unit(text, i).size);
        i += character.size();
        if (character == "\n") {
            flush_word();
            write_("\n");
            spaces_.clear();
            column_     = 0;
            first_word_ = true;
        } else if (character == " " || character == "\t") {
            flush_word();
            spaces_ += character;
        } else {
            const size_t width = width_of(character);
            if (width > 1) {
                flush_word(); // scripts without spaces break between any two characters
            }
            word_ += character;
            word_width_ += width;
            if (width > 1) {
                flush_word();
            }
        }
    }
}

void WordWrap::finish() {
    flush_word();
    if (column_ > 0) {
        write_("\n");
    }
    spaces_.clear();
    column_     = 0;
    first_word_ = true;
    in_code_    = false;
}

} // namespace penelope
