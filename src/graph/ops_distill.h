// How far the states of a student are from those of its teacher.
#pragma once

#include "graph/ops.h"

namespace penelope {

// student, teacher: [d, rows] -> [1]: the mean over all elements of SmoothL1 (beta 1) of their difference, divided by the
// standard deviation (unbiased, over all elements) of the teacher's. The teacher gets no gradient.
Node distillation(Graph & g, Node student, Node teacher);

} // namespace penelope
