#include "infer/sampler.h"

#include "base/error.h"
#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace penelope {

void check_sampling(const SamplingOptions & o) {
    const auto require = [](bool ok, const char * flag, const char * range) {
        if (!ok) {
            throw Error(ErrorKind::usage, std::string(flag) + ": out of range, expected " + range);
        }
    };
    require(std::isfinite(o.temperature) && o.temperature >= 0.0f, "--temp", "0 or more");
    require(o.top_k >= 0, "--top-k", "0 (off) or more");
    require(o.top_p > 0.0f && o.top_p <= 1.0f, "--top-p", "above 0 and at most 1");
    require(o.min_p >= 0.0f && o.min_p <= 1.0f, "--min-p", "0 to 1");
}

Sampler::Sampler(const SamplingOptions & options) : options_(options) {
    check_sampling(options);
}

int32_t Sampler::sample(const float * logits, int n_vocab) {
    if (options_.temperature == 0.0f) {
        return int32_t(std::max_element(logits, logits + n_vocab) - logits);
    }
    candidates_.clear();
    for (int32_t id = 0; id < n_vocab; id++) {
        if (logits[id] > -INFINITY) {
            candidates_.push_back({ logits[id], id });
        }
    }
    size_t n = candidates_.size();
    if (options_.top_k > 0 && size_t(options_.top_k) < n) {
        n = size_t(options_.top_k);
    }
    // Ties are broken by id so that the draw does not depend on how the sort moves equals.
    const auto better = [](const auto & a, const auto & b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    };
    std::partial_sort(candidates_.begin(), candidates_.begin() + ptrdiff_t(n), candidates_.end(), better);

    // Probabilities at temperature 1 decide what is cut; the temperature shapes what is left.
    const float         best = candidates_[0].first;
    std::vector<double> weights(n);
    double              total = 0.0;
    for (size_t i = 0; i < n; i++) {
        weights[i] = std::exp(double(candidates_[i].first - best));
        total += weights[i];
    }
    size_t kept = 0;
    for (double sum = 0.0; kept < n && sum < double(options_.top_p) * total && weights[kept] >= double(options_.min_p);
         kept++) {
        sum += weights[kept];
    }
    kept = std::max<size_t>(kept, 1);

    double left = 0.0;
    for (size_t i = 0; i < kept; i++) {
        weights[i] = std::exp(double(candidates_[i].first - best) / double(options_.temperature));
        left += weights[i];
    }
    Rng    rng(options_.seed, stream_id("sample", n_drawn_++));
    double draw = rng.uniform() * left;
    size_t pick = 0;
    while (pick + 1 < kept && draw >= weights[pick]) {
        draw -= weights[pick++];
    }
    return candidates_[pick].second;
}

} // namespace penelope
