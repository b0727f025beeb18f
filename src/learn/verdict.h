// The verdict of `penelope learn`: what the scores say in plain words, and which of the trained files to use.
#pragma once

#include "task/compare.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

// One trained or untrained model on the test questions.
struct ScoredLine {
    size_t n   = 0;
    double em  = 0;           // exact match, fraction
    double low = 0, high = 0; // 95 % interval
    double latency_ms         = NAN;
    double layer_applications = 0; // of a whole answer
    double output_tokens      = 0;
};

struct VerdictInput {
    double                    majority = 0; // always the most frequent answer
    int                       n_steps  = 0; // K, chosen on validation questions
    std::optional<ScoredLine> base, visible, latent, control, swapped;
    bool                      has_steps = true; // `visible` writes steps; else the answer alone
    // Second minus first, on the same questions.
    std::optional<PairedDifference> base_to_visible, control_to_latent, swapped_to_latent;
};

enum class BestFile { base, visible, latent, control };

struct Verdict {
    BestFile    best = BestFile::visible;
    std::string headline; // one sentence
    std::string advice;   // what to do, one sentence
};

// Latent steps carry the answer if they are right more often than the control and than with the memory of another
// question (both intervals above 0); without a control, more often than the majority answer. They are preferred to
// written steps if they lose at most kTolerance of exact match. If the control is as good as both, no steps are needed.
constexpr double kTolerance = 0.05;
Verdict          judge(const VerdictInput & scores);

// "93.1 %"
std::string percent_text(double share);

} // namespace penelope
