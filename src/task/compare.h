// Two sets of predictions on the same questions: the difference in exact match with a bootstrap interval over question ids,
// and the spread over several runs.
#pragma once

#include "task/score.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

struct Outcome {
    std::string id, question; // generated ids repeat from file to file: only both together tell a question
    double      share;        // of the runs that answer it correctly
};

struct Outcomes {
    std::vector<int>     steps;     // K of the runs, ascending, each once
    std::vector<Outcome> questions; // by id, ascending
};

// The outcomes of runs with predictions, each at its chosen_score(), or all at K = steps unless that is negative. name stands
// for them in messages. Throws Error(usage) when there is no prediction at that K.
Outcomes outcomes_of(const std::vector<Evaluation> & runs, int steps, const std::string & name);

struct PairedDifference {
    size_t n          = 0;
    double difference = 0;    // share of b minus share of a
    double low = 0, high = 0; // 95 % interval
};

// Throws Error(usage) unless both are about the same questions.
PairedDifference paired_bootstrap(const std::vector<Outcome> & a, const std::vector<Outcome> & b, uint64_t seed = 1,
                                  int n_samples = 10000);

// The predictions of a run at its chosen_score() against the guess of their task; nullopt where the task has none or no K was
// chosen.
std::optional<PairedDifference> difference_to_chance(const Evaluation & run, const Task & task);

struct MeanStd {
    double mean = 0;
    double sd   = 0; // of the sample; 0 for fewer than two
};
MeanStd mean_std(const std::vector<double> & values);

} // namespace penelope
