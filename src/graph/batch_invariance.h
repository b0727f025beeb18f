// The CPU multiplies one row with other kernels than several, and they round differently: 1e-5 for F32 weights, 1e-3 for F16. So
// what a sequence is told would depend on how many others are computed with it. Where that is so, a product is put down
// as one of each sequence's rows, which ggml computes with the kernels that sequence would meet alone.
#pragma once

#include "graph/graph.h"

namespace penelope {

// Into how many products of equal numbers of rows weight * x must fall apart: 1 where all rows at once give the same bits, with a
// tape, and off the CPU.
int64_t n_invariant_splits(const Graph & g, Node weight, Node x);

// Whether `n_few` rows times this weight come out as they do among `n_many`, found by trying once per type and shape.
bool is_batch_invariant(Node weight, int64_t n_few, int64_t n_many);

// Whether a row of many can depend on where it stands among them, for one of these weights.
bool depends_on_batch_position(const std::vector<Node> & weights);

} // namespace penelope
