// Cross-entropy over the rows of hidden states through an output head, in memory that does not grow with rows times
// vocabulary: a few rows of logits live at a time, their gradients are taken while they are there, and no dense labels exist.
#pragma once

#include "graph/ops.h"

namespace penelope {

struct CrossEntropy {
    Node loss; // [1], sum over rows of weight * row
    Node rows; // [rows], -log of the probability of the target, at most 87
};

// hidden [d, rows] after the final norm; head.weight [d, n_vocab] of any type without bias and low-rank update; targets I32
// [rows]; weights F32 [rows]. The gradients of hidden and of head.weight are linear in weights, so a power of two in them scales
// all gradients exactly. max_logit_bytes bounds the logits that exist at one time.
CrossEntropy cross_entropy(Graph & g, const Linear & head, Node hidden, Node targets, Node weights,
                           size_t max_logit_bytes = size_t(32) << 20);

} // namespace penelope
