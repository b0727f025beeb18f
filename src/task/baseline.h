// Baselines without reasoning: accuracy of the best constant answer for each group of questions.
#pragma once

#include "task/example.h"

#include <functional>

namespace penelope {

// The constant is chosen on these examples, of which there is at least one. One group for all: the majority baseline.
double best_constant_accuracy(const std::vector<Example> &                        examples,
                              const std::function<std::string(const Example &)> & group);

double majority_accuracy(const std::vector<Example> & examples);

} // namespace penelope
