// Cross-entropy through the output head in bounded memory. Logits are computed for a few rows at a time, their
// gradients are taken at once, and labels stay indices (never one-hot).
#pragma once

#include "graph/ops.h"

namespace penelope {

struct CrossEntropy {
    Node loss; // [1], sum over rows of weight * -log p(target)
    Node rows; // [rows], -log p(target), at most 87
};

// hidden [d, rows] after the final norm; head.weight [d, n_vocab] of any type, without bias and LoRA; targets I32
// [rows]; weights F32 [rows]. The gradients of hidden and head.weight are linear in `weights`, so scaling `weights` by
// a power of two scales all gradients exactly. max_logit_bytes limits the logits in memory at one time.
CrossEntropy cross_entropy(Graph & g, const Linear & head, Node hidden, Node targets, Node weights,
                           size_t max_logit_bytes = size_t(32) << 20);

} // namespace penelope
