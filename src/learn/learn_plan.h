// The plan of `penelope learn`: which stages are trained, with which settings, and how long all of it takes.
#pragma once

#include "learn/recipe.h"

#include <string>
#include <vector>

namespace penelope {

// What a stage needs, measured by a few of its updates.
struct StageProbe {
    StageSpeed speed;
    uint64_t   bytes = 0; // memory at most
};

struct PlannedStage {
    LearnStage    stage;
    TrainSettings settings; // resolved by the trainer later
    StageProbe    probe;
    double        seconds = 0; // expected: updates and validations
};

struct LearnPlan {
    std::vector<PlannedStage> stages;
    double                    scoring_seconds = 0;
    double                    seconds         = 0; // of all that is left to do
    uint64_t                  bytes           = 0; // memory at most
};

// Seconds of a stage with these settings at this speed.
double stage_seconds(const TrainSettings & settings, const StageSpeed & speed);

// The recipe's inputs for the stages still to be trained. seconds: left for training. Latent and control get equally
// many updates: both see the time of both and the cost of an update of both.
struct StageTimes {
    double visible = 0, bridge = 0, latent_and_control = 0;

    double of(LearnStage stage) const;
};
// next: the first stage that is not trained yet. has_latent: whether any follows the visible one.
StageTimes divide_time(double seconds, const LearnModelFacts & model, const LearnDataFacts & data, LearnStage next,
                       bool has_latent);

} // namespace penelope
