#include "base/statistics.h"

#include <algorithm>
#include <cmath>

namespace penelope {

MeanStd mean_std(const std::vector<double> & values) {
    MeanStd result;
    for (double value : values) {
        result.mean += value / double(values.size());
    }
    for (double value : values) {
        result.sd += (value - result.mean) * (value - result.mean);
    }
    result.sd = values.size() > 1 ? std::sqrt(result.sd / double(values.size() - 1)) : 0.0;
    return result;
}

double quantile(const std::vector<double> & sorted, double p) {
    return sorted[size_t(p * double(sorted.size() - 1))];
}

std::pair<double, double> wilson_interval(double share, size_t n) {
    if (n == 0) {
        return { 0, 1 };
    }
    constexpr double z      = 1.959964;
    const double     count  = double(n);
    const double     centre = (share + z * z / (2 * count)) / (1 + z * z / count);
    const double half = z / (1 + z * z / count) * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
    return { std::clamp(centre - half, 0.0, share), std::clamp(centre + half, share, 1.0) }; // rounding stays inside
}

} // namespace penelope
