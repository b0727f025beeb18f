#include "convert/reorder.h"

#include <vector>

namespace penelope {

namespace {

using Find = int64_t (TensorPermutation::*)(int64_t) const;

void read_ordered(const TensorSpec & spec, Find find, int64_t first, int64_t n, int64_t width, float * out,
                  const ReadRows & read) {
    // A vector's elements are what rows are for a matrix; it comes as a single row.
    const bool                is_vector = spec.ne.size() == 1;
    const TensorPermutation & rows      = is_vector ? TensorPermutation() : spec.rows;
    const TensorPermutation & columns   = is_vector ? spec.rows : spec.columns;
    if (rows.is_same()) {
        read(first, n, out);
    } else {
        for (int64_t i = 0; i < n; i++) {
            read((rows.*find)(first + i), 1, out + i * width);
        }
    }
    if (!columns.is_same()) {
        std::vector<float> row(static_cast<size_t>(width));
        for (int64_t i = 0; i < n; i++) {
            std::copy_n(out + i * width, width, row.begin());
            for (int64_t j = 0; j < width; j++) {
                out[i * width + j] = row[size_t((columns.*find)(j))];
            }
        }
    }
}

} // namespace

void read_as_gguf(const TensorSpec & spec, int64_t first, int64_t n, int64_t width, float * out,
                  const ReadRows & read) {
    read_ordered(spec, &TensorPermutation::hf_of_gguf, first, n, width, out, read);
    for (int64_t i = 0; spec.value != ValueTransform::same && i < n * width; i++) {
        out[i] = gguf_value(spec.value, out[i]);
    }
}

void read_as_hf(const TensorSpec & spec, int64_t first, int64_t n, int64_t width, float * out, const ReadRows & read) {
    read_ordered(spec, &TensorPermutation::gguf_of_hf, first, n, width, out, read);
    for (int64_t i = 0; spec.value != ValueTransform::same && i < n * width; i++) {
        out[i] = hf_value(spec.value, out[i]);
    }
}

} // namespace penelope
