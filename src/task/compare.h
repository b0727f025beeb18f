// Two sets of predictions on the same questions: the difference in exact match with a bootstrap interval over question ids,
// and the spread over several runs.
#pragma once

#include "task/evaluate.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penelope {

// By question id, ascending: the share of runs that answer it correctly.
using Outcomes = std::vector<std::pair<std::string, double>>;

// The outcomes of runs with predictions, each at its chosen_score(), or all at K = steps unless that is negative. name stands
// for them in messages. Throws Error(usage) when there is no prediction at that K.
Outcomes outcomes_of(const std::vector<Evaluation> & runs, int steps, const std::string & name);

struct PairedDifference {
    size_t n          = 0;
    double difference = 0;    // share of b minus share of a
    double low = 0, high = 0; // 95 % interval
};

// Throws Error(usage) unless both are about the same questions.
PairedDifference paired_bootstrap(const Outcomes & a, const Outcomes & b, uint64_t seed = 1, int n_samples = 10000);

struct Spread {
    double mean = 0;
    double sd   = 0; // of the sample; 0 for fewer than two
};
Spread spread(const std::vector<double> & values);

} // namespace penelope
