// Checks values and tensors for NaN and infinity.
#pragma once

#include "gguf/reader.h"

#include <cstddef>

namespace penelope {

bool all_finite(const float * values, size_t n);

// True for a type that ggml cannot convert to F32: code that needs its values rejects it anyway.
bool all_finite(const GgufTensor & tensor);

} // namespace penelope
