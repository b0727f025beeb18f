// Coconut and CODI a step at a time or in one graph, see method/latent_steps.h: a pass over prompt and start row, a
// pass per thought, a pass over the end row. Between graphs the next thought of every stream waits on the device.
#pragma once

#include "method/latent_steps.h"
#include "method/thoughts.h"
#include "model/weights.h"

namespace penelope {

class ThoughtSteps : public LatentSteps {
  public:
    // Method and context outlive it.
    ThoughtSteps(const ThoughtMethod & method, Context & context);

    // "R": the thought that comes next, one row.
    std::vector<StateTensor> read_state(int stream) const override;
    // The thoughts, and the logits at the end row, before any prefix.
    std::vector<StateTensor> states(const Prompt & prompt, int n_steps) override;

  protected:
    PassResult run(const Pass & pass) override;

  private:
    struct Rows;
    struct Built;

    Rows    rows_of(const Pass & pass, const Tokens & prefix, int & applications);
    Built & graph(const Rows & rows);
    Node    build_start(Built & built, const Rows & rows, bool need_thought);
    void    build_end(Built & built, const Rows & rows);
    Built & compute(const Pass & pass, const Tokens & prefix, int & applications);

    const ThoughtMethod & method_;
    WeightStore           store_;
    Node                  next_; // [d, streams]
};

} // namespace penelope
