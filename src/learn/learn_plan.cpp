#include "learn/learn_plan.h"

#include <algorithm>

namespace penelope {

double stage_seconds(const TrainSettings & s, const StageSpeed & speed) {
    const double n_validations = s.eval_every > 0 ? double(s.n_updates) / double(s.eval_every) : 1;
    return double(s.n_updates) * speed.update_seconds +
           n_validations * double(s.validation.limit) * speed.question_seconds;
}

StageTimes divide_time(double seconds, const LearnModelFacts & model, const LearnDataFacts & data, bool has_visible,
                       bool has_latent) {
    const double all = std::max(0.0, seconds);
    if (!has_latent) {
        return { all, 0 };
    }
    const double visible = has_visible ? all * std::min(0.95, visible_share(model, data)) : 0;
    return { visible, all - visible };
}

} // namespace penelope
