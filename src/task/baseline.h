// What guessing gives: the share of examples answered correctly by one constant answer per group of questions.
#pragma once

#include "task/example.h"

#include <functional>

namespace penelope {

// The best constant answer is chosen for each group on these very examples, at least one; one group for all: the share of
// the most frequent answer.
double best_constant_accuracy(const std::vector<Example> &                        examples,
                              const std::function<std::string(const Example &)> & group);

double majority_accuracy(const std::vector<Example> & examples);

} // namespace penelope
