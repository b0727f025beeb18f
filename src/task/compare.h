// Compares two sets of predictions on the same questions: difference in exact match with a paired bootstrap interval.
#pragma once

#include "base/statistics.h"
#include "task/score.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

struct Outcome {
    std::string id, question; // generated ids repeat across files, so both identify a question
    double      share;        // fraction of the runs that answer it correctly
};

struct Outcomes {
    std::vector<int>     steps;     // K of the runs, ascending, each once
    std::vector<Outcome> questions; // by id, ascending
};

// Outcomes of runs at K = steps, or each at its chosen_score() if steps is negative. name is used in messages. Throws
// Error(usage) if there are no predictions at that K.
Outcomes outcomes_of(const std::vector<Evaluation> & runs, int steps, const std::string & name);

struct PairedDifference {
    size_t n          = 0;
    double difference = 0;    // share of b minus share of a
    double low = 0, high = 0; // 95 % interval
};

// Throws Error(usage) if the questions differ.
PairedDifference paired_bootstrap(const std::vector<Outcome> & a, const std::vector<Outcome> & b, uint64_t seed = 1,
                                  int n_samples = 10000);

// A run at its chosen_score() against the first baseline of the task; nullopt: no such baseline or no chosen K.
std::optional<PairedDifference> difference_to_chance(const Evaluation & run, const Task & task);

} // namespace penelope
