// Curriculum: for every update the number of latent steps K and the number u of reasoning steps that are removed from
// the target.
//
// Staged (the paper): the first half of the updates has stages u = 1, 2, ... of equal length with K = u; the second
// half uses the last K and only the answer as target. The control without latent steps has the same targets at K = 0.
// CoT fine-tuning is one stage with K = 0 and all steps in the target.
//
// Uniform (beyond the paper): one stage with only the answer as target; K is drawn from 1 .. max for every update, or,
// deep, with weight K. The loss is on all answers, or only on those that K can reach: each latent step does one gold
// step, the final pass another unless steps are forced.
//
// --advance-at (beyond the paper): a stage ends when its smoothed loss is small enough. Saved updates go to the last
// stage. A stage that is not learned goes on, but the last stage always keeps a quarter of all updates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct Stage {
    int64_t first         = 0; // updates first .. last, counted from 1
    int64_t last          = 0;
    int     n_steps       = 0; // K
    int     n_skip_steps  = 0; // u; kAnswerOnly: the target is only the answer
    bool    is_final      = false;
    bool    has_random_k  = false; // K is drawn from 1 .. n_steps
    bool    supervise_all = true;  // also supervise answers that need more than K steps and the final pass
    bool    is_deep       = false; // K is drawn with weight K

    int64_t n_updates() const { return last - first + 1; }

    // n_needed: latent steps until the memory holds the last result, with those that the final pass may do itself.
    bool supervises(size_t n_needed, size_t n_final) const {
        return supervise_all || n_needed <= size_t(n_steps) + n_final;
    }
};

constexpr int kAnswerOnly = 1 << 20; // more steps than any example has

enum class KSchedule {
    staged,      // as in the paper
    uniform,     // random K, loss on answers that K can reach
    uniform_all, // random K, loss on all answers
    deep,        // random K with weight K, loss on answers that K can reach
};

// "staged", "uniform", "uniform-all", "deep"; throws Error(usage) for anything else.
KSchedule parse_k_schedule(const std::string & name);

// Position of a run in its curriculum.
struct StageProgress {
    int64_t stage        = 0;  // index into stages()
    int64_t start_update = 0;  // updates done before the stage
    double  loss         = -1; // smoothed loss of the stage; negative: no update yet

    void add(double newest);
};

class Curriculum {
  public:
    // One stage with random K from 1 .. depth; depth 0: no latent steps, loss on all answers.
    static Curriculum with_random_k(int64_t n_updates, int depth, bool supervise_all, bool is_deep = false);

    // Stages with random K whose maximum rises from 1 to depth; each lasts until its loss is at most `advance_loss`.
    static Curriculum with_growing_k(int64_t n_updates, int depth, bool supervise_all, double advance_loss);

    // One stage with this K and only the answer as target.
    static Curriculum with_constant_k(int64_t n_updates, int depth);

    // The staged curriculum with u = 1 .. n_blocks and K = min(u, depth). n_blocks 0: CoT fine-tuning. Stages without
    // updates are left out.
    Curriculum(int64_t n_updates, int n_blocks, int depth);

    // Stages end when their loss is at most `advance_loss` (> 0); `first` and `last` of stages() are then only a plan.
    void set_advance_loss(double advance_loss) { advance_loss_ = advance_loss; }

    // Extends the last stage to this update.
    void extend_to(int64_t n_updates) { stages_.back().last = n_updates; }

    const std::vector<Stage> & stages() const { return stages_; }
    const Stage &              at(const StageProgress & progress) const { return stages_[size_t(progress.stage)]; }

    // The position of the next update, after n_done updates.
    StageProgress next(const StageProgress & progress, int64_t n_done) const;

    // The stage of an update with K drawn; K depends on seed and update only.
    Stage draw(const StageProgress & progress, int64_t update, uint64_t seed) const;

  private:
    std::vector<Stage> stages_;
    double             advance_loss_ = 0; // 0: fixed stage lengths
};

// "K=2 u=2", "K=6 answer"
std::string stage_text(const Stage & stage);

} // namespace penelope
