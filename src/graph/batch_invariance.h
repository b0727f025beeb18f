// Batch invariance: a sequence gets the same bits whether it runs alone or in a batch.
//
// On the CPU, ggml multiplies one row with another kernel than several rows, and the two round differently (1e-5 for
// F32 weights, 1e-3 for F16). A sequence's tokens could then depend on the other sequences of the batch. Where a trial
// product shows such a difference, the product over the batch is split into one product per sequence.
#pragma once

#include "graph/graph.h"

namespace penelope {

// Number of equal row blocks weight * x must be split into; 1 means no split. Always 1 when the result is batch
// invariant anyway, with a tape (training), and on GPUs.
int64_t n_invariant_splits(const Graph & g, Node weight, Node x);

// Whether n_few rows times this weight give the same bits among n_many rows. Measured once per type and shape.
bool is_batch_invariant(Node weight, int64_t n_few, int64_t n_many);

// Whether, for any of these weights, the bits of a row can depend on its index in the batch.
bool depends_on_batch_position(const std::vector<Node> & weights);

} // namespace penelope
