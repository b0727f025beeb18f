// CPU kernels for operations that ggml lacks or runs slowly, as custom nodes. Only graphs that run on the CPU may
// contain them: Tape::host_kernels() tells. Results do not depend on the number of threads.
#pragma once

#include "graph/graph.h"

namespace penelope {

struct Dropout; // graph/dropout.h
struct Draw;

// Transpose with zero padding: F32 [a, b, n] -> contiguous [b + n_zeros, a, n]. Rows of x must be contiguous.
Node cpu_transpose(Graph & g, Node x, int64_t n_zeros);

// The second product of a LoRA pair: b_transposed [n_out, rank], low [rank, rows] -> [n_out, rows], all contiguous F32.
// cpu_add_low_rank() adds the result to y in place; nothing else may read y.
Node cpu_low_rank(Graph & g, Node b_transposed, Node low);
Node cpu_add_low_rank(Graph & g, Node y, Node b_transposed, Node low);

// matrix^T product without building the transpose: matrix [d, n] of any type, weights F32 [n, columns] -> [d, columns],
// column j = sum over i of weights[i, j] * matrix row i. Columns of `weights` must be contiguous.
Node cpu_weighted_rows(Graph & g, Node matrix, Node weights);

// Gradient of gate in silu(gate) * up: dy * up * silu'(gate). All contiguous F32 of one shape.
Node cpu_swiglu_gate_back(Graph & g, Node dy, Node gate, Node up);

// dropout(x) for contiguous F32 x, with the masks of graph/dropout.h. Seed and step are read when the graph runs.
Node cpu_dropout(Graph & g, Node x, const Dropout & source, const Draw & draw);

} // namespace penelope
