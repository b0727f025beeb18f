// Penelope with a fixed K: one graph from token ids through all latent steps to the logits of the first answer token.
// Prompts longer than n_batch are prefilled in chunks first.
#pragma once

#include "latent/trajectory.h"
#include "method/method.h"

namespace penelope {

class PenelopeMethod : public Method {
  public:
    // steps: the time tables for t = 1 .. k_max. All nodes outlive the method.
    PenelopeMethod(const PenelopeModules & modules, const LatentShape & shape, std::vector<TimeStep> steps,
                   int k_default);

    std::string name() const override { return "penelope"; }
    int         default_steps() const override { return k_default_; }
    int         max_steps() const override { return shape_.k_max; }
    int         n_extra_rows(int) const override { return shape_.n_interface(); }

    Prefill prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const override;
    void    sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                  const std::function<void(int, const Prefill &)> & answer) const override;
    std::vector<StateTensor> states(Context & context, const Prompt & prompt, int n_steps) const override;

    LatentSteps * steps(Context & context) const override;

    const PenelopeModules &       modules() const { return modules_; }
    const LatentShape &           shape() const { return shape_; }
    const std::vector<TimeStep> & time_steps() const { return steps_; }

  private:
    PenelopeModules       modules_;
    LatentShape           shape_;
    std::vector<TimeStep> steps_;
    int                   k_default_;
};

} // namespace penelope
