#include "task/baseline.h"

#include <algorithm>
#include <map>

namespace penelope {

double best_constant_accuracy(const std::vector<Example> &                        examples,
                              const std::function<std::string(const Example &)> & group) {
    std::map<std::string, std::map<std::string, size_t>> answers;
    for (const Example & example : examples) {
        answers[group(example)][example.answer]++;
    }
    size_t n_correct = 0;
    for (const auto & [name, counts] : answers) {
        size_t best = 0;
        for (const auto & [answer, n] : counts) {
            best = std::max(best, n);
        }
        n_correct += best;
    }
    return static_cast<double>(n_correct) / static_cast<double>(examples.size());
}

double majority_accuracy(const std::vector<Example> & examples) {
    return best_constant_accuracy(examples, [](const Example &) { return std::string(); });
}

} // namespace penelope
