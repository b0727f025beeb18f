// Predictions, scores per K, and the K at which a run is compared. Needs no model.
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
    int         n_steps_taken = 0;  // latent steps actually run
    float       step_cosine   = -1; // see Answer
    int         depth         = -1; // of the question; negative: unknown
    std::string question, text, extracted, answer;
    std::string gold; // gold answer in the form that is compared
    bool        parsed = false, correct = false;
    int         n_tokens           = 0;  // with EOS
    double      latency_ms         = -1; // negative: not measured
    int         layer_applications = 0;
    std::string finish_reason; // "length": truncated
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
    double                  em = 0, parsed = 0, truncated = 0; // fractions; truncated: hit the token limit
    size_t                  n             = 0;
    double                  output_tokens = 0;                // mean
    double                  latency_ms = NAN, latency_sd = 0; // mean and standard deviation; NaN: not measured
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
    size_t                   n_unanswered = 0; // questions left when interrupted

    // CoT: layer applications are counted per token; there is no K.
    bool is_visible() const;
};

// "3", "auto"
std::string steps_label(int n_steps);

// Scores by K from predictions.
std::vector<Score> score(const std::vector<Prediction> & predictions);

// The smallest K with the best exact match.
int best_steps(const std::vector<Score> & scores);

// The score at the default K of the file, or at the only K evaluated. Null if several other K were evaluated: taking
// the best of them would select on the test questions.
const Score * find_chosen_score(const Evaluation & evaluation);

// The same; throws Error(usage) instead of returning null. name is used in the message.
const Score & chosen_score(const Evaluation & evaluation, const std::string & name);

} // namespace penelope
