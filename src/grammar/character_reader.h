// Reads pattern languages (GBNF, regular expressions) character by character: position for messages, escapes, classes
// such as [a-z_] and counts such as {2,5}.
#pragma once

#include "grammar/grammar.h"

namespace penelope {

class CharacterReader {
  public:
    // what: prefix of messages. Invalid UTF-8 is read as U+FFFD.
    CharacterReader(std::string_view text, std::string what);

    bool at_end() const { return at_ == text_.size(); }
    char peek() const { return text_[at_]; } // not at the end
    void skip() { at_++; }
    bool take(std::string_view word); // false, reading nothing, if the text does not continue with it

    uint32_t character();                           // fails at the end
    uint32_t escaped(std::string_view also_escape); // also \n, \x41, \u00e9, \U0001f600, and \c for each c given

    [[noreturn]] void fail(const std::string & why) const; // Error(format) with line and column

  private:
    uint32_t hexadecimal(int n_digits);

    std::string text_, what_;
    size_t      at_ = 0;
};

// \d \w \s \D \W \S; reads nothing otherwise.
std::optional<CodeRanges> read_class_escape(CharacterReader & in);

// The rest of a class after "[", including "]". A leading "^" negates it.
CodeRanges read_class(CharacterReader & in, std::string_view also_escape);

struct Count {
    size_t                least;
    std::optional<size_t> most;
};
// * + ? {2} {2,} {2,5}; reads nothing otherwise.
std::optional<Count> read_count(CharacterReader & in);

} // namespace penelope
