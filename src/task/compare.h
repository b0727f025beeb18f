// Two sets of predictions on the same questions: the difference in exact match with a bootstrap interval over question ids,
// and the spread over several runs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penelope {

struct PairedDifference {
    size_t n          = 0;
    double difference = 0;    // share of b minus share of a
    double low = 0, high = 0; // 95 % interval
};

// (id, correct) of two runs. Throws Error(usage) unless both hold the same ids, each once.
PairedDifference paired_bootstrap(std::vector<std::pair<std::string, bool>> a,
                                  std::vector<std::pair<std::string, bool>> b, uint64_t seed = 1,
                                  int n_samples = 10000);

struct Spread {
    double mean = 0;
    double sd   = 0; // of the sample; 0 for fewer than two
};
Spread spread(const std::vector<double> & values);

} // namespace penelope
