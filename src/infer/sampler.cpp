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
    history_.push_back(token);
}

const float * Sampler::penalized(const float * logits, int n_vocab) {
    const SamplingOptions & o = options_;
    if (o.repeat_penalty == 1.0f && o.presence_penalty == 0.0f && o.frequency_penalty == 0.0f) {
        return logits;
    }
    const size_t n = o.penalty_window < 0 ? history_.size() : std::min(history_.size(), size_t(o.penalty_window));
    std::map<int32_t, int> counts;
    for (size_t i = history_.size() - n; i < history_.size(); i++) {
        counts[history_[i]]++;
    }
    penalized_.assign(logits, logits + n_vocab);
    for (const auto & [token, count] : counts) {
        float & logit = penalized_[size_t(token)];
        logit         = logit > 0.0f ? logit / o.repeat_penalty : logit * o.repeat_penalty;
        logit -= o.presence_penalty + o.frequency_penalty * float(count);
    }
    return penalized_.data();
}

// The first place, best candidate first, at which the weights up to it reach `target`; the last one where they never
// do. The better candidates then stand in front of it, in any order: finding one place needs no sort. It is mostly near
// the front, so the first looks are short.
size_t Sampler::place_reaching(double target) {
    size_t begin = 0, end = candidates_.size();
    for (size_t step = 64; end - begin > 1; step = std::min(32 * step, candidates_.size())) {
        const size_t middle = begin + std::min(step, (end - begin) / 2);
        const auto   at     = [&](size_t place) { return candidates_.begin() + ptrdiff_t(place); };
        std::nth_element(at(begin), at(middle), at(end), Better());
        double sum = 0.0;
        for (size_t i = begin; i < middle; i++) {
            sum += candidates_[i].weight;
        }
        if (sum >= target) {
            end = middle;
        } else {
            target -= sum;
            begin = middle;
        }
    }
    return begin;
}

int32_t Sampler::sample(const float * logits, int n_vocab) {
    logits = penalized(logits, n_vocab);
    if (options_.temperature == 0.0f) {
        return int32_t(std::max_element(logits, logits + n_vocab) - logits);
    }
    float best = -INFINITY;
    candidates_.clear();
    for (int32_t id = 0; id < n_vocab; id++) {
        if (logits[id] > -INFINITY) {
            candidates_.push_back({ logits[id], id, 0.0 });
            best = std::max(best, logits[id]);
        }
    }
    if (options_.top_k > 0 && size_t(options_.top_k) < candidates_.size()) {
        constexpr int kFew = 256; // a heap of so few finds them in one pass
        const auto    end  = candidates_.begin() + options_.top_k;
        if (options_.top_k <= kFew) {
            std::partial_sort(candidates_.begin(), end, candidates_.end(), Better());
        } else {
            std::nth_element(candidates_.begin(), end, candidates_.end(), Better());
        }
        candidates_.resize(size_t(options_.top_k));
    }

    // Probabilities at temperature 1 decide what is cut; the temperature shapes what is left.
    if (options_.top_p < 1.0f || options_.min_p > 0.0f) {
        double total = 0.0;
        for (Candidate & one : candidates_) {
            one.weight = std::exp(double(one.logit - best));
            total += one.weight;
        }
        const auto unlikely = [&](const Candidate & one) { return one.weight < double(options_.min_p); };
        candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), unlikely), candidates_.end());
        if (options_.top_p < 1.0f) {
            candidates_.resize(place_reaching(double(options_.top_p) * total) + 1);
        }
    }

    double left = 0.0;
    for (Candidate & one : candidates_) {
        one.weight = std::exp(double(one.logit - best) / double(options_.temperature));
        left += one.weight;
    }
    Rng          rng(options_.seed, stream_id("sample", n_drawn_++));
    const double draw = rng.uniform() * left;
    return candidates_[place_reaching(std::nextafter(draw, left))].id; // where they exceed the draw
}

} // namespace penelope
