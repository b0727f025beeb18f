#include "train/curriculum.h"

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr double  kSmoothing     = 0.1; // exponential moving average: weight of the newest loss
constexpr int64_t kMinUpdates    = 20;  // minimum length of a stage, so that its smoothed loss is reliable
constexpr int64_t kFinalFraction = 4;   // the last stage keeps 1/4 of all updates

} // namespace

KSchedule parse_k_schedule(const std::string & name) {
    if (name == "staged") {
        return KSchedule::staged;
    }
    if (name == "uniform") {
        return KSchedule::uniform;
    }
    if (name == "uniform-all") {
        return KSchedule::uniform_all;
    }
    if (name == "deep") {
        return KSchedule::deep;
    }
    throw Error(ErrorKind::usage, "--k-schedule: unknown value " + in_quotes(name),
                "expected staged, uniform, uniform-all or deep");
}

Curriculum Curriculum::with_random_k(int64_t n_updates, int depth, bool supervise_all, bool is_deep) {
    Curriculum curriculum(n_updates, 0, 0);
    curriculum.stages_.front() = { 1,      n_updates, depth, kAnswerOnly, true, depth > 0, supervise_all || depth == 0,
                                   is_deep };
    return curriculum;
}

Curriculum Curriculum::with_growing_k(int64_t n_updates, int depth, bool supervise_all, double advance_loss) {
    Curriculum curriculum(n_updates, depth, depth);
    for (Stage & stage : curriculum.stages_) {
        stage.n_skip_steps  = kAnswerOnly;
        stage.has_random_k  = true;
        stage.supervise_all = supervise_all;
    }
    curriculum.set_advance_loss(advance_loss);
    return curriculum;
}

Curriculum Curriculum::with_constant_k(int64_t n_updates, int depth) {
    Curriculum curriculum(n_updates, 0, 0);
    curriculum.stages_.front() = { 1, n_updates, depth, kAnswerOnly, true };
    return curriculum;
}

Curriculum::Curriculum(int64_t n_updates, int n_blocks, int depth) {
    if (n_blocks == 0) {
        stages_.push_back({ 1, n_updates, 0, 0, true });
        return;
    }
    const int64_t n_staged = n_updates / 2;
    int64_t       first    = 1;
    for (int u = 1; u <= n_blocks; u++) {
        const int64_t last = n_updates * u / (2 * n_blocks);
        if (last >= first) {
            stages_.push_back({ first, last, std::min(u, depth), u, false });
        }
        first = last + 1;
    }
    stages_.push_back({ n_staged + 1, n_updates, depth, kAnswerOnly, true });
}

void StageProgress::add(double newest) {
    loss = loss < 0 ? newest : (1 - kSmoothing) * loss + kSmoothing * newest;
}

StageProgress Curriculum::next(const StageProgress & progress, int64_t n_done) const {
    const int64_t last = int64_t(stages_.size()) - 1;
    if (progress.stage == last) {
        return progress;
    }
    const StageProgress after{ progress.stage + 1, n_done, -1 };
    if (advance_loss_ == 0) {
        return n_done < at(progress).last ? progress : after;
    }
    const int64_t n_updates = stages_.back().last;
    if (n_done >= n_updates - n_updates / kFinalFraction) {
        return { last, n_done, -1 };
    }
    return progress.loss <= advance_loss_ && n_done - progress.start_update >= kMinUpdates ? after : progress;
}

Stage Curriculum::draw(const StageProgress & progress, int64_t update, uint64_t seed) const {
    Stage stage = at(progress);
    if (stage.has_random_k) {
        Rng            rng(seed, stream_id("depth", uint64_t(update)));
        const uint64_t most = uint64_t(stage.n_steps);
        // The larger of two draws from 0 .. K comes with a weight that rises with it.
        stage.n_steps      = 1 + int(stage.is_deep ? std::max(rng.below(most), rng.below(most)) : rng.below(most));
        stage.has_random_k = false;
    }
    return stage;
}

std::string stage_text(const Stage & stage) {
    const std::string depth = "K=" + std::string(stage.has_random_k ? "1.." : "") + std::to_string(stage.n_steps);
    return stage.n_skip_steps == kAnswerOnly ? depth + " answer" : depth + " u=" + std::to_string(stage.n_skip_steps);
}

} // namespace penelope
