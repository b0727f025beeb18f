// What ggml can round to a type. It ends the process where it cannot do what is asked.
#pragma once

#include "ggml.h"

namespace penelope {

enum class QuantizeSupport {
    any,          // all numbers that are finite
    weights_only, // numbers of the size of weights, in blocks that are points of a grid; its tables take seconds to make
    needs_imatrix, // the same, with an importance matrix only
    none           // no numbers
};

QuantizeSupport quantize_support(ggml_type type); // none for what is no type at all

} // namespace penelope
