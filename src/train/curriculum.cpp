#include "train/curriculum.h"

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr double  kSmoothing  = 0.1; // share of the newest loss in the smoothed one
constexpr int64_t kFewest     = 20;  // updates of a stage, so that its loss is known
constexpr int64_t kLastsShare = 4;   // the last stage keeps one in so many updates

} // namespace

DepthDraw parse_depth_draw(const std::string & name) {
    if (name == "stages") {
        return DepthDraw::stages;
    }
    if (name == "uniform") {
        return DepthDraw::uniform;
    }
    if (name == "free") {
        return DepthDraw::free;
    }
    throw Error(ErrorKind::usage, "--depth-draw: " + in_quotes(name) + " is unknown", "stages, uniform or free");
}

Curriculum Curriculum::drawn(int64_t n_updates, int depth, bool asks_all) {
    Curriculum curriculum(n_updates, 0, 0);
    curriculum.stages_.front() = { 1, n_updates, depth, kAnswerOnly, true, depth > 0, asks_all || depth == 0 };
    return curriculum;
}

Curriculum Curriculum::growing(int64_t n_updates, int depth, bool asks_all, double learned) {
    Curriculum curriculum(n_updates, depth, depth);
    for (Stage & stage : curriculum.stages_) {
        stage.n_latent = kAnswerOnly;
        stage.is_drawn = true;
        stage.asks_all = asks_all;
    }
    curriculum.last_until(learned);
    return curriculum;
}

Curriculum Curriculum::constant(int64_t n_updates, int depth) {
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

void StagePlace::add(double newest) {
    loss = loss < 0 ? newest : (1 - kSmoothing) * loss + kSmoothing * newest;
}

StagePlace Curriculum::next(const StagePlace & place, int64_t n_done) const {
    const int64_t last = int64_t(stages_.size()) - 1;
    if (place.stage == last) {
        return place;
    }
    const StagePlace after{ place.stage + 1, n_done, -1 };
    if (learned_ == 0) {
        return n_done < at(place).last ? place : after;
    }
    const int64_t n_updates = stages_.back().last;
    if (n_done >= n_updates - n_updates / kLastsShare) {
        return { last, n_done, -1 };
    }
    return place.loss <= learned_ && n_done - place.since >= kFewest ? after : place;
}

Stage Curriculum::draw(const StagePlace & place, int64_t update, uint64_t seed) const {
    Stage stage = at(place);
    if (stage.is_drawn) {
        stage.n_steps  = 1 + int(Rng(seed, stream_id("depth", uint64_t(update))).below(uint64_t(stage.n_steps)));
        stage.is_drawn = false;
    }
    return stage;
}

std::string stage_text(const Stage & stage) {
    const std::string depth = "K=" + std::string(stage.is_drawn ? "1.." : "") + std::to_string(stage.n_steps);
    return stage.n_latent == kAnswerOnly ? depth + " answer" : depth + " u=" + std::to_string(stage.n_latent);
}

} // namespace penelope
