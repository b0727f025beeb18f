// Which depth K each update trains and how many reasoning steps it leaves to the latent computation.
//
// Latent methods: the first half of the updates in equal blocks u = 1, 2, ..., each with K = u, the second half at the last K
// with the answer alone as target. A control without latent steps sees the same targets at K = 0. Visible chain of thought has
// one stage: K = 0, all steps in the target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct Stage {
    int64_t first    = 0; // updates first .. last, counted from 1
    int64_t last     = 0;
    int     n_steps  = 0; // K
    int     n_latent = 0; // u; kAnswerOnly: no step is left in the target
    bool    is_final = false;

    int64_t n_updates() const { return last - first + 1; }
};

constexpr int kAnswerOnly = 1 << 20; // more steps than any example has

class Curriculum {
  public:
    // n_blocks: values of u; 0: visible chain of thought. K = min(u, depth). Stages that get no update are left out.
    Curriculum(int64_t n_updates, int n_blocks, int depth);

    const std::vector<Stage> & stages() const { return stages_; }
    const Stage &              at(int64_t update) const; // 1 .. n_updates

  private:
    std::vector<Stage> stages_;
};

// "K=2 u=2", "K=6 answer"
std::string stage_text(const Stage & stage);

} // namespace penelope
