#include "graph/kernels.h"

#include "graph/dropout.h"

#include <ggml-cpu.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

// Function multiversioning: loops are also compiled for AVX2 + FMA, and the loader picks the version for this CPU.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#    define PENELOPE_CPU_VERSIONS __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#    define PENELOPE_CPU_VERSIONS
#endif

namespace penelope {

namespace {

// The range of n that thread ith of nth computes, in multiples of `unit`.
struct Range {
    int64_t first, last;
};
Range thread_range(int64_t n, int64_t unit, int ith, int nth) {
    const int64_t units = (n + unit - 1) / unit;
    const int64_t each  = (units + nth - 1) / nth;
    return { std::min(n, each * ith * unit), std::min(n, each * (ith + 1) * unit) };
}

Node custom(Graph & g, const std::array<int64_t, 3> & ne, std::vector<Node> sources, ggml_custom_op_t run,
            void * data = nullptr) {
    return ggml_custom_4d(g.ctx(), GGML_TYPE_F32, ne[0], ne[1], ne[2], 1, sources.data(), int(sources.size()), run,
                          GGML_N_TASKS_MAX, data);
}

// --- transpose

constexpr int64_t kTile = 16;

// dst [dst_stride, columns of the source]; tiled so that source and destination stay in the L1 cache
PENELOPE_CPU_VERSIONS
void transpose_columns(const float * src, int64_t src_stride, int64_t rows, float * dst, int64_t dst_stride,
                       Range columns) {
    for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
        const int64_t n_r = std::min(kTile, rows - r0);
        for (int64_t c0 = columns.first; c0 < columns.last; c0 += kTile) {
            const int64_t n_c  = std::min(kTile, columns.last - c0);
            const float * from = src + r0 * src_stride + c0;
            float *       to   = dst + c0 * dst_stride + r0;
            if (n_r == kTile && n_c == kTile) {
                float tile[kTile][kTile];
                for (int64_t r = 0; r < kTile; r++) {
                    for (int64_t c = 0; c < kTile; c++) {
                        tile[c][r] = from[r * src_stride + c];
                    }
                }
                for (int64_t c = 0; c < kTile; c++) {
                    std::memcpy(to + c * dst_stride, tile[c], sizeof(tile[c]));
                }
            } else {
                for (int64_t c = 0; c < n_c; c++) {
                    for (int64_t r = 0; r < n_r; r++) {
                        to[c * dst_stride + r] = from[r * src_stride + c];
                    }
                }
            }
        }
    }
    for (int64_t c = columns.first; c < columns.last; c++) {
        std::fill(dst + c * dst_stride + rows, dst + (c + 1) * dst_stride, 0.0f);
    }
}

void run_transpose(ggml_tensor * dst, int ith, int nth, void *) {
    const ggml_tensor * src   = dst->src[0];
    const Range         range = thread_range(src->ne[0], kTile, ith, nth);
    for (int64_t i = 0; i < src->ne[2]; i++) {
        const char * from = static_cast<const char *>(src->data) + size_t(i) * src->nb[2];
        char *       to   = static_cast<char *>(dst->data) + size_t(i) * dst->nb[2];
        transpose_columns(reinterpret_cast<const float *>(from), int64_t(src->nb[1] / sizeof(float)), src->ne[1],
                          reinterpret_cast<float *>(to), dst->ne[0], range);
    }
}

// --- low-rank update

// Eight floats; without AVX the compiler uses two SSE vectors.
typedef float     Vector __attribute__((vector_size(32), aligned(4)));
constexpr int64_t kWidth   = 8;
constexpr int64_t kVectors = 8; // accumulators held in registers

// Floats from one row to the next.
struct Strides {
    int64_t y, low;
};

// y += b low when `add`, else y = b low, for rows of n_out numbers
PENELOPE_CPU_VERSIONS
void low_rank_rows(float * y, const float * b, const float * low, int64_t n_out, int64_t rank, Strides strides,
                   Range rows, bool add) {
    const int64_t block = kWidth * kVectors;
    for (int64_t i0 = 0; i0 < n_out; i0 += block) {
        for (int64_t r = rows.first; r < rows.last; r++) {
            float *       out = y + r * strides.y + i0;
            const float * h   = low + r * strides.low;
            if (i0 + block <= n_out) {
                Vector * vectors        = reinterpret_cast<Vector *>(out);
                Vector   sums[kVectors] = {};
                if (add) {
                    for (int64_t v = 0; v < kVectors; v++) {
                        sums[v] = vectors[v];
                    }
                }
                for (int64_t j = 0; j < rank; j++) {
                    const Vector * column = reinterpret_cast<const Vector *>(b + j * n_out + i0);
                    for (int64_t v = 0; v < kVectors; v++) {
                        sums[v] += h[j] * column[v];
                    }
                }
                for (int64_t v = 0; v < kVectors; v++) {
                    vectors[v] = sums[v];
                }
            } else {
                for (int64_t i = 0; i < n_out - i0; i++) {
                    float sum = add ? out[i] : 0.0f;
                    for (int64_t j = 0; j < rank; j++) {
                        sum += h[j] * b[j * n_out + i0 + i];
                    }
                    out[i] = sum;
                }
            }
        }
    }
}

void low_rank(ggml_tensor * dst, const ggml_tensor * b, const ggml_tensor * low, int ith, int nth, bool add) {
    low_rank_rows(static_cast<float *>(dst->data), static_cast<const float *>(b->data),
                  static_cast<const float *>(low->data), dst->ne[0], low->ne[0], { dst->ne[0], low->ne[0] },
                  thread_range(dst->ne[1], 1, ith, nth), add);
}

void run_add_low_rank(ggml_tensor * dst, int ith, int nth, void *) {
    low_rank(dst, dst->src[1], dst->src[2], ith, nth, true); // src[0] is the tensor dst is a view of
}

void run_low_rank(ggml_tensor * dst, int ith, int nth, void *) {
    low_rank(dst, dst->src[0], dst->src[1], ith, nth, false);
}

// --- weighted rows

constexpr int64_t kDequantizedRows = 32; // dequantized at a time; their weighted sum is written once

void dequantize_row(const void * from, ggml_type type, float * to, int64_t n) {
    switch (type) {
        case GGML_TYPE_F32: std::memcpy(to, from, size_t(n) * sizeof(float)); break;
        case GGML_TYPE_F16: ggml_cpu_fp16_to_fp32(static_cast<const ggml_fp16_t *>(from), to, n); break;
        case GGML_TYPE_BF16: ggml_cpu_bf16_to_fp32(static_cast<const ggml_bf16_t *>(from), to, n); break;
        default: ggml_get_type_traits(type)->to_float(from, to, n);
    }
}

// Threads split the features, so that each sum is computed by one thread and does not depend on their number.
void run_weighted_rows(ggml_tensor * dst, int ith, int nth, void *) {
    const ggml_tensor * matrix  = dst->src[0];
    const ggml_tensor * weights = dst->src[1];
    const int64_t       unit    = std::max<int64_t>(kWidth * kVectors, ggml_blck_size(matrix->type));
    const Range         range   = thread_range(dst->ne[0], unit, ith, nth);
    const int64_t       n_out   = range.last - range.first;
    const Strides       strides = { dst->ne[0], int64_t(weights->nb[1] / sizeof(float)) };
    std::vector<float>  dequantized(size_t(kDequantizedRows * n_out));
    for (int64_t first = 0; n_out > 0 && first < matrix->ne[1]; first += kDequantizedRows) {
        const int64_t n = std::min(kDequantizedRows, matrix->ne[1] - first);
        for (int64_t i = 0; i < n; i++) {
            const char * row = static_cast<const char *>(matrix->data) + size_t(first + i) * matrix->nb[1];
            dequantize_row(row + ggml_row_size(matrix->type, range.first), matrix->type, dequantized.data() + i * n_out,
                           n_out);
        }
        low_rank_rows(static_cast<float *>(dst->data) + range.first, dequantized.data(),
                      static_cast<const float *>(weights->data) + first, n_out, n, strides, { 0, dst->ne[1] },
                      first > 0);
    }
}

// --- swiglu

typedef uint32_t Words __attribute__((vector_size(32)));

// e^x within 2 ulp for x in [-87, 88]: Cody-Waite reduction to [-ln2/2, ln2/2] and a polynomial.
inline __attribute__((always_inline)) void exponential(Vector & x) {
    const Vector rounded = x * 1.44269504f + 12582912.0f; // adding 1.5 * 2^23 leaves the integer in the low bits
    const Vector n       = rounded - 12582912.0f;
    const Vector r       = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    Vector       p       = r * 1.38888889e-3f + 8.33333333e-3f;
    p                    = p * r + 4.16666667e-2f;
    p                    = p * r + 1.66666667e-1f;
    p                    = p * r + 5.0e-1f;
    p                    = p * r * r + r + 1.0f;
    Words bits;
    std::memcpy(&bits, &rounded, sizeof(bits));
    bits = (bits + 127) << 23; // 2^n: shift n into the exponent bits
    Vector power;
    std::memcpy(&power, &bits, sizeof(power));
    x = p * power;
}

inline __attribute__((always_inline)) void gate_back(float * out, const float * dy, const float * gate,
                                                     const float * up) {
    Vector d, x, u;
    std::memcpy(&d, dy, sizeof(d));
    std::memcpy(&x, gate, sizeof(x));
    std::memcpy(&u, up, sizeof(u));
    // Comparisons with NaN are false, so NaN stays NaN.
    Vector e = -x;
    e        = e < -87.0f ? Vector{} - 87.0f : e;
    e        = e > 88.0f ? Vector{} + 88.0f : e;
    exponential(e);
    const Vector s = 1.0f / (1.0f + e);
    const Vector g = d * u * (s + x * s * (1.0f - s));
    std::memcpy(out, &g, sizeof(g));
}

PENELOPE_CPU_VERSIONS
void swiglu_gate_back(float * out, const float * dy, const float * gate, const float * up, int64_t n) {
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
        gate_back(out + i, dy + i, gate + i, up + i);
    }
    if (i < n) {
        float        tail[4][kWidth] = {};
        const size_t n_bytes         = size_t(n - i) * sizeof(float);
        std::memcpy(tail[1], dy + i, n_bytes);
        std::memcpy(tail[2], gate + i, n_bytes);
        std::memcpy(tail[3], up + i, n_bytes);
        gate_back(tail[0], tail[1], tail[2], tail[3]);
        std::memcpy(out + i, tail[0], n_bytes);
    }
}

void run_swiglu_gate_back(ggml_tensor * dst, int ith, int nth, void *) {
    const Range range = thread_range(ggml_nelements(dst), 64, ith, nth);
    const auto  at    = [&](const ggml_tensor * t) { return static_cast<float *>(t->data) + range.first; };
    swiglu_gate_back(at(dst), at(dst->src[0]), at(dst->src[1]), at(dst->src[2]), range.last - range.first);
}

// --- dropout

struct DropoutOp {
    const Dropout * source;
    Draw            draw;
};

constexpr int64_t kBlocksAtATime = 256;

PENELOPE_CPU_VERSIONS
void multiply(float * out, const float * x, const float * factors, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = x[i] * factors[i];
    }
}

void run_dropout(ggml_tensor * dst, int ith, int nth, void * data) {
    const DropoutOp *                   op    = static_cast<const DropoutOp *>(data);
    const int64_t                       block = dropout_block(dst->ne[0]);
    const float *                       bank  = op->source->bank().data();
    const float *                       x     = static_cast<const float *>(dst->src[0]->data);
    float *                             out   = static_cast<float *>(dst->data);
    const Range                         range = thread_range(ggml_nelements(dst) / block, 4, ith, nth);
    std::array<int32_t, kBlocksAtATime> rows{};
    for (int64_t first = range.first; first < range.last; first += kBlocksAtATime) {
        const int64_t n = std::min(kBlocksAtATime, range.last - first);
        op->draw.choose(*op->source, dst, first, n, rows.data());
        for (int64_t i = 0; i < n; i++) {
            multiply(out + (first + i) * block, x + (first + i) * block, bank + int64_t(rows[size_t(i)]) * block,
                     block);
        }
    }
}

} // namespace

Node cpu_transpose(Graph & g, Node x, int64_t n_zeros) {
    GGML_ASSERT(x->type == GGML_TYPE_F32 && x->nb[0] == sizeof(float) && x->ne[3] == 1);
    return custom(g, { x->ne[1] + n_zeros, x->ne[0], x->ne[2] }, { x }, run_transpose);
}

Node cpu_low_rank(Graph & g, Node b_transposed, Node low) {
    GGML_ASSERT(ggml_is_contiguous(b_transposed) && ggml_is_contiguous(low) && b_transposed->ne[1] == low->ne[0]);
    return custom(g, { b_transposed->ne[0], low->ne[1], 1 }, { b_transposed, low }, run_low_rank);
}

Node cpu_add_low_rank(Graph & g, Node y, Node b_transposed, Node low) {
    GGML_ASSERT(ggml_is_contiguous(y) && ggml_is_contiguous(b_transposed) && ggml_is_contiguous(low));
    GGML_ASSERT(b_transposed->ne[0] == y->ne[0] && b_transposed->ne[1] == low->ne[0] && low->ne[1] == y->ne[1]);
    std::vector<Node> sources = { b_transposed, low };
    return ggml_custom_inplace(g.ctx(), y, sources.data(), int(sources.size()), run_add_low_rank, GGML_N_TASKS_MAX,
                               nullptr);
}

Node cpu_weighted_rows(Graph & g, Node matrix, Node weights) {
    GGML_ASSERT(weights->type == GGML_TYPE_F32 && weights->nb[0] == sizeof(float) && matrix->ne[1] == weights->ne[0]);
    return custom(g, { matrix->ne[0], weights->ne[1], 1 }, { matrix, weights }, run_weighted_rows);
}

Node cpu_swiglu_gate_back(Graph & g, Node dy, Node gate, Node up) {
    GGML_ASSERT(ggml_is_contiguous(dy) && ggml_is_contiguous(gate) && ggml_is_contiguous(up));
    return custom(g, { dy->ne[0], dy->ne[1], dy->ne[2] }, { dy, gate, up }, run_swiglu_gate_back);
}

Node cpu_dropout(Graph & g, Node x, const Dropout & source, const Draw & draw) {
    GGML_ASSERT(ggml_is_contiguous(x));
    source.bank(); // created here, before several threads read it
    auto op = std::make_shared<DropoutOp>(DropoutOp{ &source, draw });
    g.retain(op);
    return custom(g, { x->ne[0], x->ne[1], x->ne[2] }, { x }, run_dropout, op.get());
}

} // namespace penelope
