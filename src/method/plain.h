// Methods without latent steps: plain (prefill, then decode the answer) and cot (the same, with a visible chain of
// thought in the answer).
#pragma once

#include "method/method.h"

namespace penelope {

class PlainMethod : public Method {
  public:
    std::string name() const override { return "plain"; }
    Prefill     prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const override;
};

// Visible chain of thought. The context is filled as by plain; the trace is part of the answer.
class CotMethod : public PlainMethod {
  public:
    std::string name() const override { return "cot"; }
};

} // namespace penelope
