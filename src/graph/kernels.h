// Operations ggml lacks or runs slowly on the CPU, as custom nodes. They run on the CPU alone; the callers choose them when
// the tape says that the graph will. Results do not depend on the number of threads.
#pragma once

#include "graph/graph.h"

namespace penelope {

struct Dropout; // graph/dropout.h
struct Draw;

// F32 with contiguous rows [a, b, n] -> contiguous [b + n_zeros, a, n], zeros at the end of every row.
Node cpu_transpose(Graph & g, Node x, int64_t n_zeros);

// A product over few terms: b_transposed [n_out, rank], low [rank, rows] -> [n_out, rows], all contiguous F32. The second form
// adds it to y in place; nothing else may read y.
Node cpu_low_rank(Graph & g, Node b_transposed, Node low);
Node cpu_add_low_rank(Graph & g, Node y, Node b_transposed, Node low);

// Rows of a matrix of any type, added up by weights: matrix [d, n], weights F32 [n, columns] with contiguous columns -> [d, columns],
// the product with the transpose of the matrix, which is never made.
Node cpu_weighted_rows(Graph & g, Node matrix, Node weights);

// The gradient of the gate in silu(gate) * up: dy * up * silu'(gate). All contiguous F32 of one shape.
Node cpu_swiglu_gate_back(Graph & g, Node dy, Node gate, Node up);

// x with a share of its elements set to zero and the others enlarged so that the mean stays: contiguous F32. Which ones
// graph/dropout.h says; seed and step are read when the graph runs.
Node cpu_dropout(Graph & g, Node x, const Dropout & source, const Draw & draw);

} // namespace penelope
