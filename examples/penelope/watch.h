// Shows what a model thinks while it thinks: after every latent step the tokens its states are nearest to, through the final
// norm and the head. On a terminal one line that is written over, elsewhere a line per step, both on stderr.
#pragma once

#include "infer/session.h"
#include "terminal.h"

namespace penelope {

class StepWatch {
  public:
    explicit StepWatch(Terminal & terminal) : terminal_(terminal) {}

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

} // namespace penelope
