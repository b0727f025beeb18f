#include "task/compare.h"

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace penelope {

Outcomes outcomes_of(const std::vector<Evaluation> & runs, int steps, const std::string & name) {
    std::map<std::string, std::pair<int, int>> counts; // correct, all
    for (const Evaluation & run : runs) {
        const int chosen = steps >= 0 ? steps : chosen_score(run).n_steps;
        for (const Prediction & p : run.predictions) {
            if (p.n_steps == chosen) {
                counts[p.id].first += p.correct;
                counts[p.id].second++;
            }
        }
    }
    if (counts.empty()) {
        throw Error(ErrorKind::usage,
                    name + ": holds no prediction" + (steps < 0 ? "" : " at K=" + std::to_string(steps)),
                    "give files that penelope eval --predictions wrote");
    }
    Outcomes outcomes;
    for (const auto & [id, count] : counts) {
        outcomes.emplace_back(id, double(count.first) / count.second);
    }
    return outcomes;
}

PairedDifference paired_bootstrap(const Outcomes & a, const Outcomes & b, uint64_t seed, int n_samples) {
    if (a.empty() || a.size() != b.size() ||
        !std::equal(a.begin(), a.end(), b.begin(), [](const auto & x, const auto & y) { return x.first == y.first; })) {
        throw Error(ErrorKind::usage, "comparison: the two sets of predictions are not about the same " +
                                          std::to_string(a.size()) + " questions");
    }
    std::vector<double> gain(a.size());
    double              total = 0;
    for (size_t i = 0; i < a.size(); i++) {
        gain[i] = b[i].second - a[i].second;
        total += gain[i];
    }
    Rng                 rng(seed, stream_id("bootstrap"));
    std::vector<double> means;
    const double        n = double(gain.size());
    for (int sample = 0; sample < n_samples; sample++) {
        double sum = 0;
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
