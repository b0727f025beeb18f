// The prompts of penelope run: from -p, -f, --batch or stdin.
#pragma once

#include "base/json.h"
#include "options.h"
#include "terminal.h"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

struct PromptInput {
    OrderedJson          id; // "id" of a --batch line, else its index; null for a single prompt
    std::string          text;
    std::optional<Error> parse_error; // a line of stdin that is not a valid prompt
};

// The prompts in order. -p, -f, stdin and --batch FILE are read and checked at once, --batch - is read line by line as
// it arrives.
class PromptSource {
  public:
    // Throws UsageError for more than one source, and Error with file and line for invalid input.
    PromptSource(const Options & options, Terminal & terminal);

    // 1 to `most` prompts, none at the end of the input. Waits for the first one only. Throws Error(cancelled) on
    // Ctrl-C.
    std::vector<PromptInput> next(size_t most);

    std::optional<size_t> total() const; // unknown with --batch -

  private:
    void read_more();

    std::deque<PromptInput> ready_;
    size_t                  n_total_ = 0;
    bool                    streams_ = false;
    bool                    ended_   = true;
    std::string             bytes_; // the incomplete last line
    int                     n_line_ = 0;
};

// A whole file, or standard input for "-". Throws Error naming the file.
std::string read_text(const std::string & path);

} // namespace penelope
