// The packed product in plain C++: what the kernels of every processor compute, to the bit.
#include "cpu/packed_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace penelope::cpu {

namespace {

constexpr int64_t kHalf = kBlock / 2;

void quantize_row(const float * x, int64_t n_in, void * row) {
    int8_t * values = static_cast<int8_t *>(row);
    char *   after  = static_cast<char *>(row) + n_in;
    for (int64_t b = 0; b < n_in / kBlock; b++, x += kBlock, values += kBlock, after += sizeof(BlockFactors)) {
        float largest   = 0.0f;
        bool  is_finite = true;
        for (int64_t i = 0; i < kBlock; i++) {
            largest   = std::max(largest, std::fabs(x[i]));
            is_finite = is_finite && std::isfinite(x[i]);
        }
        // What is not finite makes every result that reads it NaN: its values are 0 and its scale is infinite.
        const float  inverse = is_finite && largest > kSmallest ? 127.0f / largest : 0.0f;
        BlockFactors factors{ is_finite ? largest / 127.0f : std::numeric_limits<float>::infinity(), 0.0f, { 0, 0 } };
        for (int64_t i = 0; i < kBlock; i++) {
            values[i] = is_finite ? int8_t(std::nearbyint(x[i] * inverse)) : int8_t(0);
            factors.half_sums[i / kHalf] += values[i];
        }
        factors.scaled_sum = factors.scale * float(factors.half_sums[0] + factors.half_sums[1]);
        std::memcpy(after, &factors, sizeof(factors));
    }
}

float half_at(const uint8_t * bytes, int64_t row) {
    ggml_fp16_t half;
    std::memcpy(&half, bytes + row * 2, sizeof(half));
    return ggml_fp16_to_fp32(half);
}

// A row's share of a packed block.
struct RowBlock {
    int32_t values[kBlock];
    float   scales[2]; // of the first and the last 16 values
    float   offset;
};

RowBlock unpack(const PackedFormat & format, const uint8_t * header, const uint8_t * block, int64_t row) {
    RowBlock     out{};
    const size_t halves = kGroupRows * sizeof(ggml_fp16_t);
    if (format.header_bytes == 0) {
        out.scales[0] = out.scales[1] = half_at(block, row);
        block += halves;
        if (format.bias == 0) {
            out.offset = half_at(block, row);
            block += halves;
        }
    } else if (format.scale_per_half) {
        out.scales[0] = half_at(header, row) * float(int8_t(block[row]));
        out.scales[1] = half_at(header, row) * float(int8_t(block[kGroupRows + row]));
        block += 2 * kGroupRows;
    } else {
        out.scales[0] = out.scales[1] = half_at(header, row) * float(block[row]);
        out.offset                    = -(half_at(header + halves, row) * float(block[kGroupRows + row]));
        block += 2 * kGroupRows;
    }
    for (int64_t i = 0; i < kBlock; i++) {
        const int64_t   j    = i / 4; // the vector
        const uint8_t * byte = block + row * 4 + i % 4;
        if (format.type == GGML_TYPE_Q8_0) {
            out.values[i] = byte[j * 64];
            continue;
        }
        out.values[i] = byte[j % 4 * 64] >> (j < 4 ? 0 : 4) & 15;
        if (format.has_fifth_bit) {
            out.values[i] |= (byte[4 * 64] >> j & 1) << 4;
        } else if (format.scale_per_half) {
            out.values[i] |= (byte[(4 + j / 4) * 64] >> (j % 4 * 2) & 3) << 4;
        }
    }
    return out;
}

void multiply(const PackedProduct & p) {
    const PackedFormat & format      = *p.format;
    const size_t         group_bytes = packed_bytes(format, p.n_in, kGroupRows);
    for (int64_t row = p.first_group * kGroupRows; row < std::min(p.last_group * kGroupRows, p.n_out); row++) {
        for (int64_t c = 0; c < p.n_columns; c++) {
            const uint8_t * at     = static_cast<const uint8_t *>(p.packed) + size_t(row / kGroupRows) * group_bytes;
            const char *    x      = static_cast<const char *>(p.x) + size_t(c) * quantized_row_bytes(p.n_in);
            const uint8_t * header = at;
            float           sum    = 0.0f;
            for (int64_t b = 0; b < p.n_in / kBlock; b++, at += format.block_bytes) {
                if (format.header_bytes > 0 && b % 8 == 0) {
                    header = at;
                    at += format.header_bytes;
                }
                const RowBlock w = unpack(format, header, at, row % kGroupRows);
                BlockFactors   factors;
                std::memcpy(&factors, x + p.n_in + size_t(b) * sizeof(factors), sizeof(factors));
                int32_t dots[2] = {};
                for (int64_t i = 0; i < kBlock; i++) {
                    dots[i / kHalf] += (w.values[i] - format.bias) * int8_t(x[b * kBlock + i]);
                }
                if (format.scale_per_half) {
                    sum = std::fma(float(dots[0]), w.scales[0] * factors.scale, sum);
                    sum = std::fma(float(dots[1]), w.scales[1] * factors.scale, sum);
                } else {
                    sum = std::fma(float(dots[0] + dots[1]), w.scales[0] * factors.scale, sum);
                }
                if (format.bias == 0) {
                    sum = std::fma(w.offset, factors.scaled_sum, sum);
                }
            }
            p.y[c * p.n_out + row] = sum;
        }
    }
}

} // namespace

const PackedKernels & reference_packed_kernels() {
    static const PackedKernels kernels = { "plain C++", quantize_row, multiply };
    return kernels;
}

} // namespace penelope::cpu
