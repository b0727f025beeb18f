// Shows what a model thinks while it thinks: after every latent step the tokens its states are nearest to, through the final
// norm and the head. On a terminal one line that is written over, elsewhere a line per step, both on stderr.
#pragma once

#include "infer/session.h"
#include "terminal.h"

namespace penelope {

class StepPrinter {
  public:
    explicit StepPrinter(Terminal & terminal) : terminal_(terminal) {}

    StepCallback callback();
    // Leaves what was said standing before the answer is written over it.
    TokenCallback before(const TokenCallback & on_token);
    void          finish(); // the same where no token comes

  private:
    void show(const TraceStep & step);

    Terminal &               terminal_;
    std::vector<std::string> said_; // by the first row of every step
    std::string              line_;
};

// Shows a visible chain of thought as it comes, apart from the answer: dim, on stderr.
class ReasoningPrinter {
  public:
    explicit ReasoningPrinter(Terminal & terminal) : terminal_(terminal) {}

    ReasoningCallback callback();
    // Ends the thought before the answer begins.
    TokenCallback before(const TokenCallback & on_token);
    void          finish(); // the same where no answer comes

  private:
    Terminal & terminal_;
    bool       open_ = false;
};

} // namespace penelope
