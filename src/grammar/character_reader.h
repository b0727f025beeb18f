// What the languages of patterns share: a text read character by character with its place for messages, escapes,
// classes such as [a-z_] and counts such as {2,5}.
#pragma once

#include "grammar/grammar.h"

namespace penelope {

class CharacterReader {
  public:
    // what: begins the messages. The text is taken as UTF-8, broken parts as U+FFFD.
    CharacterReader(std::string_view text, std::string what);

    bool at_end() const { return at_ == text_.size(); }
    char peek() const { return text_[at_]; } // not at the end
    void skip() { at_++; }
    bool take(std::string_view word); // false and nothing read when it is not there

    uint32_t character(); // the next one; fails at the end
    uint32_t
    escaped(std::string_view also_escape); // the same with \n, \x41, \u00e9, \U0001f600 and \c for each c given

    [[noreturn]] void fail(const std::string & why) const; // Error(format) with line and column

  private:
    uint32_t hexadecimal(int n_digits);

    std::string text_, what_;
    size_t      at_ = 0;
};

// \d \w \s and their opposites; nothing read when it is none of them.
std::optional<CodeRanges> read_class_escape(CharacterReader & in);

// What follows "[", with the closing bracket; "^" at its head takes the others.
CodeRanges read_class(CharacterReader & in, std::string_view also_escape);

struct Count {
    size_t                least;
    std::optional<size_t> most;
};
// * + ? {2} {2,} {2,5}; nothing read when none is there.
std::optional<Count> read_count(CharacterReader & in);

} // namespace penelope
