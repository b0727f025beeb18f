// Which values ggml can quantize to a type. ggml aborts on the others.
#pragma once

#include "ggml.h"

namespace penelope {

enum class QuantizeSupport {
    any,           // all numbers that are finite
    weights_only,  // IQ types: values in the range of weights only; initializing their tables takes seconds
    needs_imatrix, // the same, with an importance matrix only
    none           // no numbers
};

QuantizeSupport quantize_support(ggml_type type); // none for what is no type at all

} // namespace penelope
