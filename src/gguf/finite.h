// Are numbers numbers? Looks for NaN and infinities in values and in tensors of any type that converts to F32.
#pragma once

#include "gguf/reader.h"

#include <cstddef>

namespace penelope {

bool all_finite(const float * values, size_t n);

// A type without a conversion to F32 counts as finite: whoever needs its values refuses it.
bool all_finite(const GgufTensor & tensor);

} // namespace penelope
