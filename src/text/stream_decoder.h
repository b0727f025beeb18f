// Tokens to text as they come. Each call gives the characters that are certain by now; bytes of an unfinished
// character wait for the next token. All that is given out, flush() included, is what Tokenizer::decode() gives.
#pragma once

#include "text/tokenizer.h"

namespace penelope {

class StreamDecoder {
  public:
    explicit StreamDecoder(Tokenizer tokenizer, DecodeOptions options = {});

    std::string feed(int32_t id); // throws Error(usage) for an id out of range
    std::string flush();          // U+FFFD if a character stayed unfinished; ready for another text afterwards

  private:
    Tokenizer     tokenizer_;
    DecodeOptions options_;
    bool          first_ = true; // no token had text yet
    std::string   pending_;      // at most three bytes between calls
};

} // namespace penelope
