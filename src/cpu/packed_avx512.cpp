// The packed product for processors with AVX-512 and VNNI.
//
// _mm512_dpbusd_epi32 multiplies 64 unsigned bytes (weights: four values of 16 rows) with 64 signed ones (x: the same
// four values for all rows) and adds four products to each of 16 sums. Eight of them are a block of 16 rows.
#include "cpu/packed_weight.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12 warns of values its own header leaves undefined on purpose.
#    pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#    pragma GCC diagnostic ignored "-Wuninitialized"
#    include <immintrin.h>

#    include <algorithm>
#    include <cstring>
#    include <limits>

#    define PENELOPE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")))
#    define PENELOPE_INLINE PENELOPE_AVX512 inline __attribute__((always_inline))

namespace penelope::cpu {

namespace {

constexpr int64_t kMaxColumns = 16; // whose sums stay in registers, beside eight vectors of weights

PENELOPE_AVX512 int32_t sum_of(__m128i bytes) {
    const __m128i sums = _mm_dpbusd_epi32(_mm_setzero_si128(), _mm_set1_epi8(1), bytes);
    const __m128i two  = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

PENELOPE_AVX512
void quantize_row(const float * x, int64_t n_in, void * row) {
    char * values = static_cast<char *>(row);
    char * after  = values + n_in;
    for (int64_t b = 0; b < n_in / kBlock; b++, x += kBlock, values += kBlock, after += sizeof(BlockFactors)) {
        const __m512 low     = _mm512_loadu_ps(x);
        const __m512 high    = _mm512_loadu_ps(x + 16);
        const float  largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
        // x - x is 0 for what is finite and NaN for what is not.
        const __m512    zero      = _mm512_add_ps(_mm512_sub_ps(low, low), _mm512_sub_ps(high, high));
        const bool      is_finite = _mm512_cmp_ps_mask(zero, zero, _CMP_UNORD_Q) == 0;
        const __mmask16 used      = is_finite ? 0xffff : 0;
        const __m512    inverse   = _mm512_set1_ps(largest > kSmallest ? 127.0f / largest : 0.0f);
        const __m128i   v0        = _mm512_maskz_cvtsepi32_epi8(used, _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse)));
        const __m128i   v1        = _mm512_maskz_cvtsepi32_epi8(used, _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse)));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(values), v0);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(values + 16), v1);
        BlockFactors factors{ is_finite ? largest / 127.0f : std::numeric_limits<float>::infinity(),
                              0.0f,
                              { sum_of(v0), sum_of(v1) } };
        factors.scaled_sum = factors.scale * float(factors.half_sums[0] + factors.half_sums[1]);
        std::memcpy(after, &factors, sizeof(factors));
    }
}

PENELOPE_INLINE __m512 load_halves(const char * from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from)));
}

PENELOPE_INLINE __m512 load_bytes(const char * from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from))));
}

PENELOPE_INLINE __m512 load_signed_bytes(const char * from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from))));
}

// A block of 16 rows in registers.
struct Block {
    __m512i values[8];
    __m512  scale, offset;
    __m512  second_scale; // of the last 16 values, where each half has its own
};

// Where the next block begins, and what eight of them share.
struct Cursor {
    const char * at;
    __m512       scale, offset;
};

PENELOPE_INLINE void unpack_nibbles(const char * at, Block & block) {
    const __m512i mask = _mm512_set1_epi8(15);
    for (int j = 0; j < 4; j++) {
        const __m512i both  = _mm512_loadu_si512(at + j * 64);
        block.values[j]     = _mm512_and_si512(both, mask);
        block.values[j + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
    }
}

PENELOPE_INLINE void add_fifth_bits(const char * at, Block & block) {
    const __m512i mask = _mm512_set1_epi8(16);
    const __m512i bits = _mm512_loadu_si512(at);
    // 0xf8: a | (b & c)
    block.values[0] = _mm512_ternarylogic_epi64(block.values[0], _mm512_slli_epi16(bits, 4), mask, 0xf8);
    block.values[1] = _mm512_ternarylogic_epi64(block.values[1], _mm512_slli_epi16(bits, 3), mask, 0xf8);
    block.values[2] = _mm512_ternarylogic_epi64(block.values[2], _mm512_slli_epi16(bits, 2), mask, 0xf8);
    block.values[3] = _mm512_ternarylogic_epi64(block.values[3], _mm512_slli_epi16(bits, 1), mask, 0xf8);
    block.values[4] = _mm512_ternarylogic_epi64(block.values[4], bits, mask, 0xf8);
    block.values[5] = _mm512_ternarylogic_epi64(block.values[5], _mm512_srli_epi16(bits, 1), mask, 0xf8);
    block.values[6] = _mm512_ternarylogic_epi64(block.values[6], _mm512_srli_epi16(bits, 2), mask, 0xf8);
    block.values[7] = _mm512_ternarylogic_epi64(block.values[7], _mm512_srli_epi16(bits, 3), mask, 0xf8);
}

PENELOPE_INLINE void add_sixth_bits(const char * at, Block & block) {
    const __m512i mask = _mm512_set1_epi8(48);
    for (int half = 0; half < 2; half++) {
        const __m512i bits = _mm512_loadu_si512(at + half * 64);
        __m512i *     to   = block.values + half * 4;
        to[0]              = _mm512_ternarylogic_epi64(to[0], _mm512_slli_epi16(bits, 4), mask, 0xf8);
        to[1]              = _mm512_ternarylogic_epi64(to[1], _mm512_slli_epi16(bits, 2), mask, 0xf8);
        to[2]              = _mm512_ternarylogic_epi64(to[2], bits, mask, 0xf8);
        to[3]              = _mm512_ternarylogic_epi64(to[3], _mm512_srli_epi16(bits, 2), mask, 0xf8);
    }
}

// What the kernel knows of a type when it is compiled.
struct Q8_0 {
    static constexpr int32_t    kBias         = 128;
    static constexpr bool       kTwoScales    = false;
    static constexpr bool       kSharesHeader = false;
    PENELOPE_INLINE static void load(Cursor & cursor, Block & block) {
        block.scale = load_halves(cursor.at);
        for (int j = 0; j < 8; j++) {
            block.values[j] = _mm512_loadu_si512(cursor.at + 32 + j * 64);
        }
        cursor.at += 32 + 8 * 64;
    }
};

template <bool kHasOffset, bool kFifth> struct Legacy { // Q4_0, Q4_1, Q5_0, Q5_1
    static constexpr int32_t    kBias         = kHasOffset ? 0 : kFifth ? 16 : 8;
    static constexpr bool       kTwoScales    = false;
    static constexpr bool       kSharesHeader = false;
    PENELOPE_INLINE static void load(Cursor & cursor, Block & block) {
        block.scale = load_halves(cursor.at);
        cursor.at += 32;
        if (kHasOffset) {
            block.offset = load_halves(cursor.at);
            cursor.at += 32;
        }
        unpack_nibbles(cursor.at, block);
        cursor.at += 4 * 64;
        if (kFifth) {
            add_fifth_bits(cursor.at, block);
            cursor.at += 64;
        }
    }
};

template <bool kFifth> struct K { // Q4_K, Q5_K
    static constexpr int32_t    kBias         = 0;
    static constexpr bool       kTwoScales    = false;
    static constexpr bool       kSharesHeader = true;
    PENELOPE_INLINE static void load_header(Cursor & cursor) {
        cursor.scale  = load_halves(cursor.at);
        cursor.offset = load_halves(cursor.at + 32);
        cursor.at += 64;
    }
    PENELOPE_INLINE static void load(Cursor & cursor, Block & block) {
        block.scale  = _mm512_mul_ps(cursor.scale, load_bytes(cursor.at));
        block.offset = _mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(cursor.offset, load_bytes(cursor.at + 16)));
        unpack_nibbles(cursor.at + 32, block);
        cursor.at += 32 + 4 * 64;
        if (kFifth) {
            add_fifth_bits(cursor.at, block);
            cursor.at += 64;
        }
    }
};

struct Q6_K {
    static constexpr int32_t    kBias         = 32;
    static constexpr bool       kTwoScales    = true;
    static constexpr bool       kSharesHeader = true;
    PENELOPE_INLINE static void load_header(Cursor & cursor) {
        cursor.scale = load_halves(cursor.at);
        cursor.at += 32;
    }
    PENELOPE_INLINE static void load(Cursor & cursor, Block & block) {
        block.scale        = _mm512_mul_ps(cursor.scale, load_signed_bytes(cursor.at));
        block.second_scale = _mm512_mul_ps(cursor.scale, load_signed_bytes(cursor.at + 16));
        unpack_nibbles(cursor.at + 32, block);
        add_sixth_bits(cursor.at + 32 + 4 * 64, block);
        cursor.at += 32 + 6 * 64;
    }
};

// One block of 16 rows times one column, added to their sums.
template <typename Type>
PENELOPE_INLINE __m512 add_block(const Block & block, const char * values, const BlockFactors & factors, __m512 sum) {
    __m512i first = _mm512_setzero_si512(), second = _mm512_setzero_si512();
    if (Type::kBias != 0) {
        first  = _mm512_set1_epi32(-Type::kBias * factors.half_sums[0]);
        second = _mm512_set1_epi32(-Type::kBias * factors.half_sums[1]);
    }
    const int32_t * fours = reinterpret_cast<const int32_t *>(values);
    for (int j = 0; j < 4; j++) {
        first  = _mm512_dpbusd_epi32(first, block.values[j], _mm512_set1_epi32(fours[j]));
        second = _mm512_dpbusd_epi32(second, block.values[j + 4], _mm512_set1_epi32(fours[j + 4]));
    }
    const __m512 x_scale = _mm512_set1_ps(factors.scale);
    if (Type::kTwoScales) {
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(first), _mm512_mul_ps(block.scale, x_scale), sum);
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(second), _mm512_mul_ps(block.second_scale, x_scale), sum);
    } else {
        const __m512 dot = _mm512_cvtepi32_ps(_mm512_add_epi32(first, second));
        sum              = _mm512_fmadd_ps(dot, _mm512_mul_ps(block.scale, x_scale), sum);
    }
    if (Type::kBias == 0) {
        sum = _mm512_fmadd_ps(block.offset, _mm512_set1_ps(factors.scaled_sum), sum);
    }
    return sum;
}

// One group of rows times N columns.
template <typename Type, int N>
PENELOPE_AVX512 void multiply_columns(const PackedProduct & p, const char * group, int64_t first_row,
                                      int64_t first_column) {
    const int64_t n_blocks = p.n_in / kBlock;
    const size_t  stride   = quantized_row_bytes(p.n_in);
    const char *  x        = static_cast<const char *>(p.x) + size_t(first_column) * stride;
    Cursor        cursor{ group, _mm512_setzero_ps(), _mm512_setzero_ps() };
    Block         block;
    __m512        sums[N];
    for (int c = 0; c < N; c++) {
        sums[c] = _mm512_setzero_ps();
    }
    for (int64_t b = 0; b < n_blocks; b++) {
        if constexpr (Type::kSharesHeader) {
            if (b % 8 == 0) {
                Type::load_header(cursor);
            }
        }
        Type::load(cursor, block);
        const char * values  = x + b * kBlock;
        const char * factors = x + p.n_in + size_t(b) * sizeof(BlockFactors);
#    pragma GCC unroll 16
        for (int c = 0; c < N; c++) {
            sums[c] = add_block<Type>(block, values + size_t(c) * stride,
                                      *reinterpret_cast<const BlockFactors *>(factors + size_t(c) * stride), sums[c]);
        }
    }
    const int64_t   n_rows = std::min(kGroupRows, p.n_out - first_row);
    const __mmask16 mask   = __mmask16((1u << n_rows) - 1);
    for (int c = 0; c < N; c++) {
        _mm512_mask_storeu_ps(p.y + (first_column + c) * p.n_out + first_row, mask, sums[c]);
    }
}

// Weights that stay in the second-level cache while all columns pass.
constexpr int64_t kCachedBytes = 256 * 1024;

using MultiplyColumns = void (*)(const PackedProduct &, const char *, int64_t, int64_t);

template <typename Type> void multiply_type(const PackedProduct & p) {
    static constexpr MultiplyColumns kKernels[kMaxColumns + 1] = {
        nullptr,
        multiply_columns<Type, 1>,
        multiply_columns<Type, 2>,
        multiply_columns<Type, 3>,
        multiply_columns<Type, 4>,
        multiply_columns<Type, 5>,
        multiply_columns<Type, 6>,
        multiply_columns<Type, 7>,
        multiply_columns<Type, 8>,
        multiply_columns<Type, 9>,
        multiply_columns<Type, 10>,
        multiply_columns<Type, 11>,
        multiply_columns<Type, 12>,
        multiply_columns<Type, 13>,
        multiply_columns<Type, 14>,
        multiply_columns<Type, 15>,
        multiply_columns<Type, 16>,
    };
    const size_t  group_bytes = packed_bytes(*p.format, p.n_in, kGroupRows);
    const int64_t n_cached    = std::max<int64_t>(1, kCachedBytes / int64_t(group_bytes));
    for (int64_t first = p.first_group; first < p.last_group; first += n_cached) {
        const int64_t last = std::min(first + n_cached, p.last_group);
        for (int64_t c = 0; c < p.n_columns; c += kMaxColumns) {
            const MultiplyColumns kernel = kKernels[std::min(kMaxColumns, p.n_columns - c)];
            for (int64_t group = first; group < last; group++) {
                kernel(p, static_cast<const char *>(p.packed) + size_t(group) * group_bytes, group * kGroupRows, c);
            }
        }
    }
}

void multiply(const PackedProduct & p) {
    switch (p.format->type) {
        case GGML_TYPE_Q8_0: multiply_type<Q8_0>(p); break;
        case GGML_TYPE_Q4_0: multiply_type<Legacy<false, false>>(p); break;
        case GGML_TYPE_Q4_1: multiply_type<Legacy<true, false>>(p); break;
        case GGML_TYPE_Q5_0: multiply_type<Legacy<false, true>>(p); break;
        case GGML_TYPE_Q5_1: multiply_type<Legacy<true, true>>(p); break;
        case GGML_TYPE_Q4_K: multiply_type<K<false>>(p); break;
        case GGML_TYPE_Q5_K: multiply_type<K<true>>(p); break;
        case GGML_TYPE_Q6_K: multiply_type<Q6_K>(p); break;
        default: GGML_ABORT("no packed layout");
    }
}

} // namespace

const PackedKernels & avx512_packed_kernels() {
    static const PackedKernels kernels = { "AVX-512 VNNI", quantize_row, multiply };
    return kernels;
}

} // namespace penelope::cpu

#endif
