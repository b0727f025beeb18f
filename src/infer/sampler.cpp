#include "infer/sampler.h"

#include "base/error.h"
#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <map>

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
    require(std::isfinite(o.repeat_penalty) && o.repeat_penalty > 0.0f, "--repeat-penalty", "above 0");
    require(std::isfinite(o.presence_penalty), "--presence-penalty", "a number");
    require(std::isfinite(o.frequency_penalty), "--frequency-penalty", "a number");
    require(o.penalty_window >= -1, "--repeat-last-n", "-1 (the whole answer) or more");
}

Sampler::Sampler(const SamplingOptions & options) : options_(options) {
    check_sampling(options);
}

void Sampler::accept(int32_t token) {
    said_.push_back(token);
}

const float * Sampler::penalized(const float * logits, int n_vocab) {
    const SamplingOptions & o = options_;
    if (o.repeat_penalty == 1.0f && o.presence_penalty == 0.0f && o.frequency_penalty == 0.0f) {
        return logits;
    }
    const size_t           n = o.penalty_window < 0 ? said_.size() : std::min(said_.size(), size_t(o.penalty_window));
    std::map<int32_t, int> counts;
    for (size_t i = said_.size() - n; i < said_.size(); i++) {
        counts[said_[i]]++;
    }
    changed_.assign(logits, logits + n_vocab);
    for (const auto & [token, count] : counts) {
        float & logit = changed_[size_t(token)];
        logit         = logit > 0.0f ? logit / o.repeat_penalty : logit * o.repeat_penalty;
        logit -= o.presence_penalty + o.frequency_penalty * float(count);
    }
    return changed_.data();
}

int32_t Sampler::sample(const float * logits, int n_vocab) {
    logits = penalized(logits, n_vocab);
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
