// What a model answered and how good that was: predictions, a score per K, and the K a run is judged by. Needs no model.
#pragma once

#include "infer/session.h"
#include "task/task.h"

#include <cmath>
#include <string>
#include <vector>

namespace penelope {

struct Prediction {
    std::string id;
    int         n_steps       = 0;  // K, or kAutoSteps
    int         n_steps_taken = 0;  // latent steps as they were
    float       step_cosine   = -1; // see Answer
    int         depth         = -1; // of the question, as the task counts it; negative: unknown
    std::string question, text, extracted, answer;
    std::string gold; // the answer in the form that texts are compared in
    bool        parsed = false, correct = false;
    int         n_tokens           = 0;  // end token included
    double      latency_ms         = -1; // negative: this question was not timed
    int         layer_applications = 0;
    std::string finish_reason; // "length": it was cut off
};

// The questions of one depth.
struct DepthScore {
    int    depth;
    size_t n;
    double em;
};

struct Score {
    int                     n_steps       = 0;                 // K, or kAutoSteps
    double                  n_steps_taken = 0;                 // latent steps, mean
    double                  em = 0, parsed = 0, truncated = 0; // shares; cut: had no room to end
    size_t                  n             = 0;
    double                  output_tokens = 0;                // mean
    double                  latency_ms = NAN, latency_sd = 0; // mean and spread over the timed questions; NaN: none was
    int                     layer_applications = 0;           // of the longest question
    std::vector<DepthScore> by_depth;                         // ascending
};

struct Evaluation {
    std::string              method, task;
    std::vector<Score>       scores;            // one per K
    std::vector<Prediction>  predictions;       // by question, then K
    int                      default_steps = 0; // K of the file
    std::vector<ChanceLevel> chance;
    bool                     interrupted  = false;
    size_t                   n_unanswered = 0; // questions that were then not answered

    // Visible steps: a layer application a layer and token, no K.
    bool is_visible() const;
};

// "3", "auto"
std::string steps_label(int n_steps);

// Scores by K from predictions.
std::vector<Score> score(const std::vector<Prediction> & predictions);

// The smallest K with the best exact match.
int best_steps(const std::vector<Score> & scores);

// The score a run is judged by: at the K its file names, chosen before these questions were seen, or at the only K there is.
// Null when several other K were scored: to take the best of them would be to choose on the test questions.
const Score * find_chosen_score(const Evaluation & evaluation);

// The same; throws Error(usage) instead of giving null. name stands for the evaluation in the message.
const Score & chosen_score(const Evaluation & evaluation, const std::string & name);

} // namespace penelope
