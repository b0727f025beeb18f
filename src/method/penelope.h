// Penelope as a method: its modules, shape and time tables. method/penelope_steps.h runs it. Prompts longer than
// n_batch are prefilled in chunks first.
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

    void sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
               const std::function<void(int, const Prefill &)> & answer) const override;

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
