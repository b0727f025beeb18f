#include "learn/learn_plan.h"

#include <algorithm>

namespace penelope {

double stage_seconds(const TrainSettings & s, const StageSpeed & speed) {
    const double n_validations = s.eval_every > 0 ? double(s.n_updates) / double(s.eval_every) : 1;
    return double(s.n_updates) * speed.update_seconds +
           n_validations * double(s.validation.limit) * speed.question_seconds;
}

double StageTimes::of(LearnStage stage) const {
    return stage == LearnStage::visible ? visible : stage == LearnStage::bridge ? bridge : latent_and_control;
}

StageTimes divide_time(double seconds, const LearnModelFacts & model, const LearnDataFacts & data, LearnStage next,
                       bool has_latent) {
    const double all = std::max(0.0, seconds);
    if (!has_latent) {
        return { all, 0, 0 };
    }
    constexpr double kMostShare = 0.9; // something is left for the latent steps
    const double     visible    = std::min(kMostShare, visible_share(model, data));
    const double     bridge     = std::min(kMostShare - visible, bridge_share(model, data));
    switch (next) {
        case LearnStage::visible: return { all * visible, all * bridge, all * (1 - visible - bridge) };
        case LearnStage::bridge: return { 0, all * bridge / (1 - visible), all * (1 - bridge / (1 - visible)) };
        default: return { 0, 0, all };
    }
}

} // namespace penelope
