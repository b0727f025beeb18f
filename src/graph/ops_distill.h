// Distillation loss between hidden states of a student and a teacher (CODI).
#pragma once

#include "graph/ops.h"

#include <vector>

namespace penelope {

// student, teacher [d, rows] -> [1]: mean over all elements of SmoothL1(student - teacher, beta 1), divided by `stddev`
// [1]. No gradient flows to teacher and stddev.
Node distillation(Graph & g, Node student, Node teacher, Node stddev);

// The unbiased standard deviation over all elements, [1].
Node standard_deviation(Graph & g, Node x);

// [2]: the mean of all elements and the sum of squared differences from it. Moments of several parts of a batch combine
// to the standard deviation of the whole.
Node moments(Graph & g, Node x);
struct Moments {
    double n, mean, squares;
};
double standard_deviation(const std::vector<Moments> & parts);

} // namespace penelope
