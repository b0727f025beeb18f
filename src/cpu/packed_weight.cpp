#include "cpu/packed_weight.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace penelope::cpu {

#if defined(__x86_64__) && defined(__GNUC__)
const PackedKernels & avx512_packed_kernels(); // packed_avx512.cpp
#endif

namespace {

constexpr size_t kVector = 64; // bytes
constexpr size_t kHalves = kGroupRows * sizeof(ggml_fp16_t);

constexpr std::array<PackedFormat, 8> kFormats = { {
    // type, values, header, block, bias, fifth bit, scale per half
    { GGML_TYPE_Q8_0, 32, 0, kHalves + 8 * kVector, 128, false, false },
    { GGML_TYPE_Q4_0, 32, 0, kHalves + 4 * kVector, 8, false, false },
    { GGML_TYPE_Q4_1, 32, 0, 2 * kHalves + 4 * kVector, 0, false, false },
    { GGML_TYPE_Q5_0, 32, 0, kHalves + 5 * kVector, 16, true, false },
    { GGML_TYPE_Q5_1, 32, 0, 2 * kHalves + 5 * kVector, 0, true, false },
    { GGML_TYPE_Q4_K, 256, 2 * kHalves, 2 * kGroupRows + 4 * kVector, 0, false, false },
    { GGML_TYPE_Q5_K, 256, 2 * kHalves, 2 * kGroupRows + 5 * kVector, 0, true, false },
    { GGML_TYPE_Q6_K, 256, kHalves, 2 * kGroupRows + 6 * kVector, 32, false, true },
} };

// One block of one row, whatever its type: q by its bits.
struct RowBlock {
    uint8_t     bytes[kBlock] = {}; // Q8_0: q; others: low four bits of q i and, above them, of q i + 16, in 16 bytes
    uint32_t    fifth         = 0;  // bit 4 of q i is bit i
    uint8_t     sixth[8]      = {}; // Q6_K: bits 4 and 5 of q 16 h + 4 j + k at bits 2 j of byte 4 h + k
    ggml_fp16_t scale = 0, offset = 0;   // of the block, or of the 256 values it belongs to
    uint8_t     scales[2] = {}, min = 0; // of K types: beside scale and offset
};

// The bytes there as one number: several are then moved with one shift.
template <typename Number> Number load(const uint8_t * bytes) {
    Number number;
    std::memcpy(&number, bytes, sizeof(number));
    return number;
}

ggml_fp16_t half_at(const uint8_t * bytes) {
    return load<ggml_fp16_t>(bytes);
}

// Scale and minimum of block `b` of eight: six bits each, in twelve bytes.
void read_k_scales(const uint8_t * from, int64_t b, RowBlock & block) {
    if (b < 4) {
        block.scales[0] = from[b] & 63;
        block.min       = from[b + 4] & 63;
    } else {
        block.scales[0] = uint8_t((from[b + 4] & 15) | (from[b - 4] >> 6) << 4);
        block.min       = uint8_t((from[b + 4] >> 4) | (from[b] >> 6) << 4);
    }
}

// 32 bytes of which this block has the low or the high nibbles.
void read_nibbles(const uint8_t * from, bool high, RowBlock & block) {
    const int          shift = high ? 4 : 0;
    constexpr uint64_t kMask = 0x0f0f0f0f0f0f0f0fu;
    for (int64_t i = 0; i < 16; i += 8) {
        const uint64_t low_half  = load<uint64_t>(from + i) >> shift & kMask;
        const uint64_t high_half = load<uint64_t>(from + i + 16) >> shift & kMask;
        const uint64_t both      = low_half | high_half << 4;
        std::memcpy(block.bytes + i, &both, sizeof(both));
    }
}

// Block `b` of a row as ggml lays its types out: Q4_0 to Q5_1.
void read_legacy(const uint8_t * from, bool has_offset, bool has_fifth, RowBlock & block) {
    block.scale = half_at(from);
    from += 2;
    if (has_offset) {
        block.offset = half_at(from);
        from += 2;
    }
    if (has_fifth) {
        std::memcpy(&block.fifth, from, sizeof(block.fifth));
        from += sizeof(block.fifth);
    }
    std::memcpy(block.bytes, from, 16);
}

void read_q4_or_q5_k(const uint8_t * super, int64_t b, bool has_fifth, RowBlock & block) {
    block.scale  = half_at(super);
    block.offset = half_at(super + 2);
    read_k_scales(super + 4, b, block);
    read_nibbles(super + (has_fifth ? 48 : 16) + b / 2 * 32, b % 2 != 0, block);
    for (int64_t i = 0; has_fifth && i < kBlock; i += 8) {
        // The product moves the lowest bit of byte k to bit 56 + k.
        const uint64_t bits = load<uint64_t>(super + 16 + i) >> b & 0x0101010101010101u;
        block.fifth |= uint32_t(bits * 0x0102040810204080u >> 56) << i;
    }
}

void read_q6_k(const uint8_t * super, int64_t b, RowBlock & block) {
    const int64_t   quarter = b % 4;
    const uint8_t * high    = super + 128 + b / 4 * 32;
    block.scale             = half_at(super + 208);
    block.scales[0]         = super[192 + b * 2];
    block.scales[1]         = super[192 + b * 2 + 1];
    read_nibbles(super + b / 4 * 64 + quarter % 2 * 32, quarter >= 2, block);
    for (int64_t half = 0; half < 2; half++) {
        uint32_t bits = 0;
        for (int64_t j = 0; j < 4; j++) {
            bits |= (load<uint32_t>(high + half * 16 + j * 4) >> (2 * quarter) & 0x03030303u) << (2 * j);
        }
        std::memcpy(block.sixth + half * 4, &bits, sizeof(bits));
    }
}

template <ggml_type type> RowBlock read_block(const uint8_t * row, int64_t b) {
    RowBlock block;
    if constexpr (type == GGML_TYPE_Q8_0) {
        block.scale = half_at(row + b * 34);
        std::memcpy(block.bytes, row + b * 34 + 2, kBlock);
    } else if constexpr (type == GGML_TYPE_Q4_0) {
        read_legacy(row + b * 18, false, false, block);
    } else if constexpr (type == GGML_TYPE_Q4_1) {
        read_legacy(row + b * 20, true, false, block);
    } else if constexpr (type == GGML_TYPE_Q5_0) {
        read_legacy(row + b * 22, false, true, block);
    } else if constexpr (type == GGML_TYPE_Q5_1) {
        read_legacy(row + b * 24, true, true, block);
    } else if constexpr (type == GGML_TYPE_Q4_K) {
        read_q4_or_q5_k(row + b / 8 * 144, b % 8, false, block);
    } else if constexpr (type == GGML_TYPE_Q5_K) {
        read_q4_or_q5_k(row + b / 8 * 176, b % 8, true, block);
    } else {
        static_assert(type == GGML_TYPE_Q6_K);
        read_q6_k(row + b / 8 * 210, b % 8, block);
    }
    return block;
}

constexpr bool has_offsets(ggml_type type) {
    return type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1;
}

// Bits k, 4 + k, 8 + k, ... as one byte.
uint8_t every_fourth_bit(uint32_t bits, int64_t k) {
    uint32_t x = bits >> k & 0x11111111u;
    x          = (x | x >> 3) & 0x03030303u;
    x          = (x | x >> 6) & 0x000f000fu;
    return uint8_t((x | x >> 12) & 0xffu);
}

// Puts one row's block into its places among the 16. Inlined, where the format is known when it is compiled.
inline void write_block(const PackedFormat & format, const RowBlock & block, int64_t row, uint8_t * to) {
    if (format.header_bytes == 0) {
        std::memcpy(to + row * 2, &block.scale, sizeof(block.scale));
        to += kHalves;
        if (has_offsets(format.type)) {
            std::memcpy(to + row * 2, &block.offset, sizeof(block.offset));
            to += kHalves;
        }
    } else {
        to[row]              = block.scales[0];
        to[kGroupRows + row] = format.scale_per_half ? block.scales[1] : block.min;
        to += 2 * kGroupRows;
    }
    const bool     is_q8     = format.type == GGML_TYPE_Q8_0;
    const int64_t  n_vectors = is_q8 ? 8 : 4;
    const uint32_t flip      = is_q8 ? 0x80808080u : 0; // adds 128 to each
    for (int64_t j = 0; j < n_vectors; j++) {
        uint32_t four;
        std::memcpy(&four, block.bytes + j * 4, sizeof(four));
        four ^= flip;
        std::memcpy(to + size_t(j) * kVector + row * 4, &four, sizeof(four));
    }
    uint8_t * high = to + 4 * kVector + row * 4;
    if (format.scale_per_half) {
        std::memcpy(high, block.sixth, 4);
        std::memcpy(high + kVector, block.sixth + 4, 4);
    } else if (format.has_fifth_bit) {
        for (int64_t k = 0; k < 4; k++) {
            high[k] = every_fourth_bit(block.fifth, k);
        }
    }
}

// pack_groups of one format: compiled for each, because a decision per block of a row would take most of the time.
template <size_t index>
void pack_format(const void * rows, int64_t n_in, int64_t n_out, int64_t first_group, int64_t last_group,
                 void * packed) {
    constexpr PackedFormat format      = kFormats[index];
    const int64_t          n_blocks    = n_in / kBlock;
    const size_t           row_bytes   = ggml_row_size(format.type, n_in);
    const size_t           group_bytes = packed_bytes(format, n_in, kGroupRows);
    for (int64_t group = first_group; group < last_group; group++) {
        uint8_t *       to     = static_cast<uint8_t *>(packed) + size_t(group) * group_bytes;
        const uint8_t * from   = static_cast<const uint8_t *>(rows) + size_t(group * kGroupRows) * row_bytes;
        const int64_t   n_rows = std::min(kGroupRows, n_out - group * kGroupRows);
        if (n_rows < kGroupRows) {
            std::memset(to, 0, group_bytes);
        }
        for (int64_t b = 0; b < n_blocks; b++) {
            uint8_t * header = to;
            to += format.header_bytes > 0 && b % 8 == 0 ? format.header_bytes : 0;
            for (int64_t r = 0; r < n_rows; r++) {
                const RowBlock block = read_block<format.type>(from + size_t(r) * row_bytes, b);
                if (to != header) {
                    std::memcpy(header + r * 2, &block.scale, sizeof(block.scale));
                    if (!format.scale_per_half) {
                        std::memcpy(header + kHalves + r * 2, &block.offset, sizeof(block.offset));
                    }
                }
                write_block(format, block, r, to);
            }
            to += format.block_bytes;
        }
    }
}

using PackFunction = void (*)(const void *, int64_t, int64_t, int64_t, int64_t, void *);
template <size_t... index>
constexpr std::array<PackFunction, sizeof...(index)> pack_functions(std::index_sequence<index...>) {
    return { pack_format<index>... };
}
constexpr auto kPackFunctions = pack_functions(std::make_index_sequence<kFormats.size()>());

} // namespace

const PackedFormat * find_packed_format(ggml_type type) {
    const auto * found = std::find_if(kFormats.begin(), kFormats.end(),
                                      [&](const PackedFormat & format) { return format.type == type; });
    return found == kFormats.end() ? nullptr : found;
}

size_t packed_bytes(const PackedFormat & format, int64_t n_in, int64_t n_out) {
    const size_t n_blocks = size_t(n_in / kBlock);
    return size_t((n_out + kGroupRows - 1) / kGroupRows) *
           (n_blocks * format.block_bytes + n_blocks / 8 * format.header_bytes);
}

void pack_groups(const PackedFormat & format, const void * rows, int64_t n_in, int64_t n_out, int64_t first_group,
                 int64_t last_group, void * packed) {
    kPackFunctions[&format - kFormats.data()](rows, n_in, n_out, first_group, last_group, packed);
}

const PackedKernels * packed_kernels() {
#if defined(__x86_64__) && defined(__GNUC__)
    static const bool has_vnni = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    return has_vnni ? &avx512_packed_kernels() : nullptr;
#else
    return nullptr;
#endif
}

} // namespace penelope::cpu
