#include "gguf/finite.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace penelope {

namespace {

constexpr uint32_t exponent_mask = 0x7F800000; // all ones in NaN and in infinities

} // namespace

bool all_finite(const float * values, size_t n) {
    bool finite = true;
    for (size_t i = 0; i < n; i++) { // without an early end the loop runs on vectors
        uint32_t bits = 0;
        std::memcpy(&bits, values + i, sizeof(bits));
        finite &= (bits & exponent_mask) != exponent_mask;
    }
    return finite;
}

bool all_finite(const GgufTensor & tensor) {
    if (tensor.type == GGML_TYPE_F32) {
        return all_finite(static_cast<const float *>(tensor.data), size_t(tensor.n_elements()));
    }
    const auto to_float = ggml_get_type_traits(tensor.type)->to_float;
    if (!to_float || tensor.n_elements() == 0) {
        return true;
    }
    const int64_t      n_row = tensor.ne[0]; // a multiple of the type's block
    std::vector<float> row(static_cast<size_t>(n_row));
    const size_t       row_size = ggml_row_size(tensor.type, n_row);
    const auto *       data     = static_cast<const uint8_t *>(tensor.data);
    for (int64_t i = 0; i < tensor.n_elements() / n_row; i++) {
        to_float(data + size_t(i) * row_size, row.data(), n_row);
        if (!all_finite(row.data(), row.size())) {
            return false;
        }
    }
    return true;
}

} // namespace penelope
