// Rows of a tensor on their way between GGUF and Hugging Face: permuted and changed in value as the table of its
// architecture says.
#pragma once

#include "arch/tensor_table.h"

#include <functional>

namespace penelope {

// Reads n rows of `width` numbers, from `row` on, of the source.
using ReadRows = std::function<void(int64_t row, int64_t n, float * out)>;

// Rows [first, first + n) of the GGUF tensor from a reader of the checkpoint's, and the other way round.
void read_as_gguf(const TensorSpec & spec, int64_t first, int64_t n, int64_t width, float * out, const ReadRows & read);
void read_as_hf(const TensorSpec & spec, int64_t first, int64_t n, int64_t width, float * out, const ReadRows & read);

} // namespace penelope
