#include "task/compare.h"

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

void sort_by_id(std::vector<std::pair<std::string, bool>> & rows, const char * which) {
    std::sort(rows.begin(), rows.end());
    for (size_t i = 1; i < rows.size(); i++) {
        if (rows[i].first == rows[i - 1].first) {
            throw Error(ErrorKind::usage,
                        std::string(which) + " set of predictions: id " + in_quotes(rows[i].first) + " occurs twice",
                        "choose one K with -K");
        }
    }
}

} // namespace

PairedDifference paired_bootstrap(std::vector<std::pair<std::string, bool>> a,
                                  std::vector<std::pair<std::string, bool>> b, uint64_t seed, int n_samples) {
    sort_by_id(a, "first");
    sort_by_id(b, "second");
    if (a.empty() || a.size() != b.size() ||
        !std::equal(a.begin(), a.end(), b.begin(), [](const auto & x, const auto & y) { return x.first == y.first; })) {
        throw Error(ErrorKind::usage, "comparison: the two sets of predictions are not about the same " +
                                          std::to_string(a.size()) + " questions");
    }
    std::vector<int> gain(a.size());
    int              total = 0;
    for (size_t i = 0; i < a.size(); i++) {
        gain[i] = int(b[i].second) - int(a[i].second);
        total += gain[i];
    }
    Rng                 rng(seed, stream_id("bootstrap"));
    std::vector<double> means;
    const double        n = double(gain.size());
    for (int sample = 0; sample < n_samples; sample++) {
        int sum = 0;
        for (size_t i = 0; i < gain.size(); i++) {
            sum += gain[rng.below(gain.size())];
        }
        means.push_back(sum / n);
    }
    std::sort(means.begin(), means.end());
    PairedDifference result;
    result.n          = gain.size();
    result.difference = total / n;
    result.low        = means[size_t(0.025 * (n_samples - 1))];
    result.high       = means[size_t(0.975 * (n_samples - 1))];
    return result;
}

Spread spread(const std::vector<double> & values) {
    Spread result;
    for (double value : values) {
        result.mean += value / double(values.size());
    }
    for (double value : values) {
        result.sd += (value - result.mean) * (value - result.mean);
    }
    result.sd = values.size() > 1 ? std::sqrt(result.sd / double(values.size() - 1)) : 0.0;
    return result;
}

} // namespace penelope
