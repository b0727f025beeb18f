// Mean, standard deviation, quantile and confidence interval.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace penelope {

struct MeanStd {
    double mean = 0;
    double sd   = 0; // sample standard deviation; 0 for fewer than two values
};
MeanStd mean_std(const std::vector<double> & values);

// The value below which the share p of the sorted values lies. At least one value.
double quantile(const std::vector<double> & sorted, double p);

// Wilson's 95 % interval of a fraction.
std::pair<double, double> wilson_interval(double share, size_t n);

} // namespace penelope
