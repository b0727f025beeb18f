// The recipe of `penelope learn`: what the trainer is told, from the model, the data, the measured speed and the time
// there is. Every number that was found by trial is in recipe.cpp; nothing here depends on a task.
#pragma once

#include "train/random_backbone.h"
#include "train/settings.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

enum class LearnStage {
    visible, // steps and answer as text; on data without steps the answer alone, on plain text the next tokens
    bridge,  // the results of the steps alone as text, where a model needs it before latent steps
    latent,  // the steps move into latent steps
    control, // as `latent`, without a latent step
};

const char * stage_name(LearnStage stage); // "visible", ...: also its folder in the run

struct LearnModelFacts {
    int     n_layer      = 0;
    int     n_embd       = 0;
    int64_t n_parameters = 0;
    bool    is_new       = false; // --from-scratch: random weights
};

// Of the training examples, in tokens of the model's vocabulary.
struct LearnDataFacts {
    size_t n_examples      = 0;
    size_t n_steps         = 0;     // written steps of the longest example; 0: none has steps
    size_t n_result_tokens = 0;     // tokens of the longest step target
    size_t n_prompt        = 0;     // tokens of the longest prompt
    size_t n_target        = 0;     // tokens of the longest target with all steps
    size_t n_answer        = 0;     // tokens of the longest target without steps
    double n_mean          = 0;     // tokens of prompt and target with all steps, mean
    bool   is_text         = false; // plain text: next tokens
};

// What a few updates of the stage took. update_seconds 0: not measured yet, the settings are for measuring.
struct StageSpeed {
    double update_seconds   = 0;
    double question_seconds = 0; // of one validation question
};

struct RecipeInput {
    LearnStage      stage = LearnStage::visible;
    LearnModelFacts model;
    LearnDataFacts  data;
    StageSpeed      speed;
    double          seconds = 0; // for the updates and validations of this stage
    uint64_t        seed    = 0;
};

// Settings of the stage, without files (data, out, model.base, model.init). A stage that was not measured yet gets
// kProbeUpdates updates and no validation.
constexpr int64_t kProbeUpdates = 4;
TrainSettings     recipe_settings(const RecipeInput & input);

// Share of the training time for the visible stage; the rest goes to latent and control, with equally many updates.
double visible_share(const LearnModelFacts & model, const LearnDataFacts & data);

// Whether there is a bridge between the visible and the latent stage, and its share of the training time.
bool   has_bridge(const LearnModelFacts & model, const LearnDataFacts & data);
double bridge_share(const LearnModelFacts & model, const LearnDataFacts & data);

// Share of all the time that is kept for scoring at the end.
constexpr double kScoringShare = 0.12;

// --from-scratch NAME: shape of the new backbone, and whether its vocabulary is learned from the data: on short
// examples bytes do. mean_bytes: of an example. Throws Error(usage) for an unknown name.
std::vector<std::string> scratch_names();
RandomBackbone           scratch_shape(const std::string & name, double mean_bytes);
int                      scratch_context(const LearnDataFacts & data); // tokens

} // namespace penelope
