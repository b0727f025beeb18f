#include "task/compare.h"

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"

#include <algorithm>
#include <map>
#include <set>

namespace penelope {

namespace {

void check_same_questions(const std::vector<Outcome> & a, const std::vector<Outcome> & b) {
    const char * hint = "score both on the same --data";
    if (a.empty() || a.size() != b.size()) {
        throw Error(ErrorKind::usage,
                    "comparison: the two files have different questions: " + std::to_string(a.size()) + " and " +
                        std::to_string(b.size()) + " predictions",
                    hint);
    }
    for (size_t i = 0; i < a.size(); i++) {
        if (a[i].id != b[i].id || a[i].question != b[i].question) {
            throw Error(ErrorKind::usage,
                        "comparison: the two files have different questions: " + in_quotes(a[i].id) + " is " +
                            in_quotes(a[i].question) + ", and " + in_quotes(b[i].id) + " is " +
                            in_quotes(b[i].question),
                        hint);
        }
    }
}

} // namespace

Outcomes outcomes_of(const std::vector<Evaluation> & runs, int steps, const std::string & name) {
    std::map<std::pair<std::string, std::string>, std::pair<int, int>> counts; // by id and question: correct, all
    std::set<int>                                                      used;
    for (const Evaluation & run : runs) {
        const int chosen = steps >= 0 ? steps : chosen_score(run, name).n_steps;
        used.insert(chosen);
        for (const Prediction & p : run.predictions) {
            if (p.n_steps == chosen) {
                auto & [n_correct, n_all] = counts[{ p.id, p.question }];
                n_correct += p.correct;
                n_all++;
            }
        }
    }
    if (counts.empty()) {
        throw Error(ErrorKind::usage, name + ": no predictions" + (steps < 0 ? "" : " at K=" + std::to_string(steps)),
                    "give files that penelope eval --predictions wrote");
    }
    Outcomes outcomes{ { used.begin(), used.end() }, {} };
    for (const auto & [question, count] : counts) {
        outcomes.questions.push_back({ question.first, question.second, double(count.first) / count.second });
    }
    return outcomes;
}

PairedDifference paired_bootstrap(const std::vector<Outcome> & a, const std::vector<Outcome> & b, uint64_t seed,
                                  int n_samples) {
    check_same_questions(a, b);
    std::vector<double> gain(a.size());
    double              total = 0;
    for (size_t i = 0; i < a.size(); i++) {
        gain[i] = b[i].share - a[i].share;
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
    result.low        = quantile(means, 0.025);
    result.high       = quantile(means, 0.975);
    return result;
}

namespace {

std::string most_frequent_answer(const std::vector<Prediction> & predictions) {
    std::map<std::string, size_t> counts;
    for (const Prediction & p : predictions) {
        counts[p.gold]++;
    }
    const auto best = std::max_element(counts.begin(), counts.end(),
                                       [](const auto & a, const auto & b) { return a.second < b.second; });
    return best == counts.end() ? "" : best->first;
}

} // namespace

std::optional<PairedDifference> difference_to_chance(const Evaluation & run, const Task & task) {
    const Score * chosen = find_chosen_score(run);
    if (!chosen || (!task.baseline_answer && &task != &generic_task())) {
        return std::nullopt;
    }
    const std::string    frequent = most_frequent_answer(run.predictions);
    std::vector<Outcome> baseline_outcomes, answered;
    for (const Prediction & p : run.predictions) {
        if (p.n_steps == chosen->n_steps) {
            baseline_outcomes.push_back(
                { p.id, p.question,
                  (task.baseline_answer ? task.baseline_answer(p.question) == p.answer : frequent == p.gold) ? 1.0
                                                                                                             : 0.0 });
            answered.push_back({ p.id, p.question, p.correct ? 1.0 : 0.0 });
        }
    }
    return paired_bootstrap(baseline_outcomes, answered);
}

} // namespace penelope
