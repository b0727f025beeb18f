// --watch: prints the nearest tokens of the latent states after every step, i.e. the states through final norm and
// output head. On a terminal one line that is updated in place, elsewhere a line per step; always on stderr.
#pragma once

#include "infer/session.h"
#include "terminal.h"

namespace penelope {

class StepPrinter {
  public:
    explicit StepPrinter(Terminal & terminal) : terminal_(terminal) {}

    StepCallback callback();
    // Wraps on_token: ends the line before the first token of the answer.
    TokenCallback before(const TokenCallback & on_token);
    void          finish(); // the same if there is no token

  private:
    void show(const TraceStep & step);

    Terminal &               terminal_;
    std::vector<std::string> said_; // nearest token of the first row at every step
    std::string              line_;
};

// Streams the chain of thought between <think> and </think> to stderr, dimmed.
class ReasoningPrinter {
  public:
    explicit ReasoningPrinter(Terminal & terminal) : terminal_(terminal) {}

    ReasoningCallback callback();
    // Wraps on_token: ends the thought before the first token of the answer.
    TokenCallback before(const TokenCallback & on_token);
    void          finish(); // the same if there is no answer

  private:
    Terminal & terminal_;
    bool       open_ = false;
};

} // namespace penelope
