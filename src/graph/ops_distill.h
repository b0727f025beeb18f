// How far the states of a student are from those of its teacher.
#pragma once

#include "graph/ops.h"

#include <vector>

namespace penelope {

// student, teacher: [d, rows] -> [1]: the mean over all elements of SmoothL1 (beta 1) of their difference, divided by
// `stddev` [1]. Teacher and spread get no gradient.
Node distillation(Graph & g, Node student, Node teacher, Node stddev);

// The standard deviation of all elements (unbiased), [1].
Node standard_deviation(Graph & g, Node x);

// What the standard deviation of several parts follows from: [2], the mean of the elements and the sum of their squared
// differences from it.
Node moments(Graph & g, Node x);
struct Moments {
    double n, mean, squares;
};
double standard_deviation(const std::vector<Moments> & parts);

} // namespace penelope
