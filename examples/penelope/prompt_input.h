// Where prompts come from: -p, -f, --batch or stdin.
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
    OrderedJson          id; // of a --batch line, else its number from 0; null for a single prompt
    std::string          text;
    std::optional<Error> parse_error; // of a line of standard input that is no question
};

// The prompts of a run in their order. Those of -p, -f, stdin and a --batch file are all there, and checked, at the start; those
// of --batch - come when their lines do.
class PromptSource {
  public:
    // Throws UsageError when sources contradict each other and Error naming file and line for what cannot be read.
    PromptSource(const Options & options, Terminal & terminal);

    // Between 1 and `most` prompts, or none at the end. Waits for the first only. Throws Error(cancelled) on Ctrl-C.
    std::vector<PromptInput> next(size_t most);

    std::optional<size_t> total() const; // unknown while lines come

  private:
    void read_more();

    std::deque<PromptInput> ready_;
    size_t                  n_total_ = 0;
    bool                    streams_ = false;
    bool                    ended_   = true;
    std::string             bytes_; // of a line that is not complete
    int                     n_line_ = 0;
};

// A whole file, or standard input for "-". Throws Error naming the file.
std::string read_text(const std::string & path);

} // namespace penelope
