// Weights packed for products on the CPU: y = W x with 16 rows of W side by side.
//
// ggml keeps a quantized row as blocks with scales. A product then reduces every block of every row to one number by
// itself. Here 16 rows are interleaved, four values of each at a time, so that one vector instruction works on 16 rows
// and no sum crosses a vector. The weights are read once for up to 16 columns of x: eight memory rows cost little more
// than one.
//
// W [n_in, n_out] becomes groups of 16 rows (the last one filled up with zeros), a group n_in / 32 blocks of 16 x 32
// values. A value is scale * (q - bias) or scale * q + offset with an unsigned q. A block holds, in this order:
//
//   scales     Q8_0, Q4_x, Q5_x: F16 [16]                 Q4_K, Q5_K: U8 [16]      Q6_K: I8 [2][16], one for 16 values
//   offsets    Q4_1, Q5_1: F16 [16]                       Q4_K, Q5_K: U8 [16]      others: none, q has a bias instead
//   values     Q8_0: eight vectors of 64 bytes, vector j with values 4j..4j+3 of rows 0..15, each + 128
//              others: four vectors; vector j has the low four bits of vectors j (low nibbles) and j + 4 (high nibbles)
//   high bits  Q5_x, Q5_K: one vector, bit j of a byte belongs to vector j
//              Q6_K: two vectors, bits 2j and 2j + 1 of a byte belong to vector j of the first or the second four
//
// Eight blocks of Q4_K, Q5_K and Q6_K follow the F16 [16] they share: d, and for the first two dmin.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace penelope::cpu {

constexpr int64_t kBlock     = 32; // values of a row that are multiplied together
constexpr int64_t kGroupRows = 16; // rows of the weight side by side

// How one type is packed.
struct PackedFormat {
    ggml_type type;
    int64_t   block_values; // a row is a multiple of this
    size_t    header_bytes; // before each eight blocks
    size_t    block_bytes;  // of 16 rows
    int32_t   bias;         // subtracted from q; 0: there are offsets instead
    bool      has_fifth_bit;
    bool      scale_per_half;
};

// Null for a type without a packed layout.
const PackedFormat * find_packed_format(ggml_type type);

// Bytes of a packed weight.
size_t packed_bytes(const PackedFormat & format, int64_t n_in, int64_t n_out);

// Packs groups [first_group, last_group) of a matrix as a GGUF file has it.
void pack_groups(const PackedFormat & format, const void * rows, int64_t n_in, int64_t n_out, int64_t first_group,
                 int64_t last_group, void * packed);

// --- the other operand: a row of x as int8

// n_in values, then for each block:
struct BlockFactors {
    float   scale;
    float   scaled_sum;   // scale times the sum of the values, for offsets
    int32_t half_sums[2]; // of the first and the last 16 values
};
constexpr size_t quantized_row_bytes(int64_t n_in) {
    return size_t(n_in) + size_t(n_in / kBlock) * sizeof(BlockFactors);
}

// A block whose largest value is not above this becomes zeros: 127 / value would not be finite.
constexpr float kSmallest = 1e-35f;

// --- kernels

// y [n_out, n_columns]: the rows of groups [first_group, last_group).
struct PackedProduct {
    const PackedFormat * format;
    const void *         packed;
    int64_t              n_in;
    int64_t              n_out;
    const void *         x; // quantized rows, one after the other
    int64_t              n_columns;
    float *              y;
    int64_t              first_group;
    int64_t              last_group;
};

// A column's result does not depend on the number of columns or threads: its sums are made in the same order.
struct PackedKernels {
    const char * name;
    void (*quantize_row)(const float * x, int64_t n_in, void * row);
    void (*multiply)(const PackedProduct & product);
};

// The kernels of this processor, null where there are none: ggml's own products are as good then.
const PackedKernels * packed_kernels();

// What the kernels compute, in plain C++; tests hold every kernel to its bits.
const PackedKernels & reference_packed_kernels();

} // namespace penelope::cpu
