#include "task/score.h"

#include "base/error.h"
#include "method/registry.h"
#include "task/compare.h"

#include <algorithm>
#include <map>

namespace penelope {

bool Evaluation::is_visible() const {
    return is_visible_method(method);
}

std::string steps_label(int n_steps) {
    return n_steps == kAutoSteps ? "auto" : std::to_string(n_steps);
}

std::vector<Score> score(const std::vector<Prediction> & predictions) {
    std::map<int, Score>                     by_steps;
    std::map<int, std::vector<double>>       latencies;
    std::map<int, std::map<int, DepthScore>> depths; // by K, then depth
    for (const Prediction & p : predictions) {
        Score & s = by_steps[p.n_steps];
        s.n_steps = p.n_steps;
        s.n++;
        s.n_steps_taken += p.n_steps_taken;
        s.em += p.correct;
        s.parsed += p.parsed;
        s.truncated += p.finish_reason == "length";
        s.output_tokens += p.n_tokens;
        if (p.latency_ms >= 0) {
            latencies[p.n_steps].push_back(p.latency_ms);
        }
        s.layer_applications = std::max(s.layer_applications, p.layer_applications);
        if (p.depth >= 0) {
            DepthScore & d = depths[p.n_steps].emplace(p.depth, DepthScore{ p.depth, 0, 0.0 }).first->second;
            d.n++;
            d.em += p.correct;
        }
    }
    std::vector<Score> scores;
    for (auto & [steps, s] : by_steps) {
        for (double * sum : { &s.em, &s.parsed, &s.truncated, &s.output_tokens, &s.n_steps_taken }) {
            *sum /= double(s.n);
        }
        for (const auto & [depth, d] : depths[steps]) {
            s.by_depth.push_back({ depth, d.n, d.em / double(d.n) });
        }
        if (const auto timed = latencies.find(steps); timed != latencies.end()) {
            const MeanStd latency = mean_std(timed->second);
            s.latency_ms          = latency.mean;
            s.latency_sd          = latency.sd;
        }
        scores.push_back(s);
    }
    return scores;
}

int best_steps(const std::vector<Score> & scores) {
    return std::max_element(scores.begin(), scores.end(), [](const Score & a, const Score & b) { return a.em < b.em; })
        ->n_steps;
}

const Score * find_chosen_score(const Evaluation & evaluation) {
    if (evaluation.scores.size() == 1) {
        return &evaluation.scores.front();
    }
    for (const Score & s : evaluation.scores) {
        if (s.n_steps == evaluation.default_steps) {
            return &s;
        }
    }
    return nullptr;
}

const Score & chosen_score(const Evaluation & evaluation, const std::string & name) {
    if (const Score * chosen = find_chosen_score(evaluation)) {
        return *chosen;
    }
    throw Error(ErrorKind::usage,
                name + ": the default K=" + std::to_string(evaluation.default_steps) + " was not evaluated",
                "pass -K " + std::to_string(evaluation.default_steps) + " too, or a single K");
}

} // namespace penelope
