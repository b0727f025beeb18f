// Which depth K each update trains and how many reasoning steps it leaves to the latent computation.
//
// Latent methods: the first half of the updates in equal blocks u = 1, 2, ..., each with K = u, the second half at the last K
// with the answer alone as target. A control without latent steps sees the same targets at K = 0. Visible chain of thought has
// one stage: K = 0, all steps in the target.
//
// Beyond the paper: one stage with the answer alone as target, for each update of which K is drawn from 1 .. depth. The answer is
// asked of all examples, or of those the drawn K suffices for: each latent step takes one gold step, the final pass another.
//
// Also beyond the paper: stages that last until they are learned. A stage then ends as soon as its smoothed loss is small enough, and
// updates it spares go to the last one; one that is not learned goes on, as long as the last keeps a quarter of all updates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct Stage {
    int64_t first         = 0; // updates first .. last, counted from 1
    int64_t last          = 0;
    int     n_steps       = 0; // K
    int     n_skip_steps  = 0; // u; kAnswerOnly: no step is left in the target
    bool    is_final      = false;
    bool    has_random_k  = false; // n_steps is the largest K
    bool    supervise_all = true;  // also for answers that lie further than K steps and a final pass

    int64_t n_updates() const { return last - first + 1; }

    bool supervises(size_t n_gold_steps) const { return supervise_all || n_gold_steps <= size_t(n_steps) + 1; }
};

constexpr int kAnswerOnly = 1 << 20; // more steps than any example has

enum class KSchedule {
    staged,      // as in the paper
    uniform,     // drawn, the answer asked where K suffices
    uniform_all, // drawn, the answer asked of all
};

// "staged", "uniform", "uniform-all"; throws Error(usage) for anything else.
KSchedule parse_k_schedule(const std::string & name);

// Where a run stands in its curriculum: the stage of its last update.
struct StageProgress {
    int64_t stage        = 0;  // of stages()
    int64_t start_update = 0;  // updates done when it began
    double  loss         = -1; // smoothed over its updates; negative: it has had none

    void add(double newest);
};

class Curriculum {
  public:
    // One stage of drawn depths; with depth 0 no latent step is taken and every answer is asked.
    static Curriculum with_random_k(int64_t n_updates, int depth, bool supervise_all);

    // Stages of drawn depths whose largest K rises from 1 to depth, each until its loss is at most `advance_loss`.
    static Curriculum with_growing_k(int64_t n_updates, int depth, bool supervise_all, double advance_loss);

    // One stage at this depth, the answer alone as target.
    static Curriculum with_constant_k(int64_t n_updates, int depth);

    // n_blocks: values of u; 0: visible chain of thought. K = min(u, depth). Stages that get no update are left out.
    Curriculum(int64_t n_updates, int n_blocks, int depth);

    // Stages last until their loss is at most `advance_loss`, above 0; first and last of stages() are then the plan alone.
    void set_advance_loss(double advance_loss) { advance_loss_ = advance_loss; }

    // The last stage goes on to this update.
    void extend_to(int64_t n_updates) { stages_.back().last = n_updates; }

    const std::vector<Stage> & stages() const { return stages_; }
    const Stage &              at(const StageProgress & progress) const { return stages_[size_t(progress.stage)]; }

    // The place of the next update, after n_done of them.
    StageProgress next(const StageProgress & progress, int64_t n_done) const;

    // The stage of an update with its very own K, which follows from seed and update.
    Stage draw(const StageProgress & progress, int64_t update, uint64_t seed) const;

  private:
    std::vector<Stage> stages_;
    double             advance_loss_ = 0; // 0: stages last as planned
};

// "K=2 u=2", "K=6 answer"
std::string stage_text(const Stage & stage);

} // namespace penelope
