// Node builders shared by the operations and the tape. They only put nodes down and record nothing.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace penelope {

// What products are summed in, where a device has the choice.
enum class SumPrecision { device_choice, f32 };

// ggml_mul_mat(a, b). With a tape it is summed in F32 also where a device would rather use 16 bits, and off the CPU of contiguous
// operands: strided ones are rounded to 16 bits there. Without one, sequences that lie side by side get the bits they would get alone.
Node matrix_product(Graph & g, Node a, Node b, SumPrecision sum = SumPrecision::device_choice);

// A contiguous transpose of each matrix of x: [a, b, n] -> [b, a, n].
Node transpose_copy(Graph & g, Node x);

// The CPU's matrix kernels are several times faster when they sum over a multiple of this many terms, their widest vector.
constexpr int64_t kProductUnit = 16;

// A transpose for a product that sums over the rows of x, which may get zeros at its end: [a, b, n] -> [b or more, a, n]. Two
// of equal b fit each other.
Node transpose_padded(Graph & g, Node x);

// A matrix of any type as one that can be transposed: quantized rows become F32, others stay as they are.
Node dequantized(Graph & g, Node x);

// Matrices of equal ne0, one after the other.
Node join_rows(Graph & g, const std::vector<Node> & parts);

// Sums x over whatever was broadcast when a tensor of the shape of `like` met one of the shape of x.
Node sum_to(Graph & g, Node x, Node like);

// Zeros in the shape of an F32 node.
Node zeros_like(Graph & g, Node node);

} // namespace penelope
