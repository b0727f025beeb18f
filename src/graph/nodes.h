// Helpers that build nodes for the operations and the tape. They record no gradients.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace penelope {

// Accumulator of a matrix product, where the device offers a choice.
enum class SumPrecision { device_choice, f32 };

// ggml_mul_mat(a, b). With a tape the accumulator is F32, and strided operands are copied on GPUs, which would
// otherwise round them to 16 bits. Without a tape the product is batch invariant (graph/batch_invariance.h).
Node matrix_product(Graph & g, Node a, Node b, SumPrecision sum = SumPrecision::device_choice);

// A contiguous transpose of each matrix of x: [a, b, n] -> [b, a, n].
Node transpose_copy(Graph & g, Node x);

// ggml's CPU matrix kernels are several times faster when the summed dimension is a multiple of the widest vector.
constexpr int64_t kProductUnit = 16;

// Transpose of x for a product that sums over the rows of x: [a, b, n] -> [b padded with zeros, a, n]. Two results with
// the same b have the same padding.
Node transpose_padded(Graph & g, Node x);

// Quantized x as F32; any other type unchanged.
Node dequantized(Graph & g, Node x);

// Concatenates matrices of equal ne0 along the rows.
Node join_rows(Graph & g, const std::vector<Node> & parts);

// Reduces x to the shape of `like` by summing over the broadcast dimensions.
Node sum_to(Graph & g, Node x, Node like);

// Zeros in the shape of an F32 node.
Node zeros_like(Graph & g, Node node);

} // namespace penelope
