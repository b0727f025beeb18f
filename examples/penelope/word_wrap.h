// Word-wraps streamed text at the width of the terminal. A word is written when it is complete. Fenced code blocks are
// not wrapped.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace penelope {

class WordWrap {
  public:
    // columns: asked for every word, because windows change.
    WordWrap(std::function<void(std::string_view)> write, std::function<size_t()> columns);

    void feed(std::string_view text); // whole characters of UTF-8
    void finish();                    // writes the word that waits, and ends the line if it has begun

  private:
    void flush_word();

    std::function<void(std::string_view)> write_;
    std::function<size_t()>               columns_;
    std::string                           spaces_, word_; // not yet written
    size_t                                word_width_ = 0;
    size_t                                column_     = 0;
    bool                                  first_word_ = true; // of a line of the text
    bool                                  in_code_    = false;
};

} // namespace penelope
