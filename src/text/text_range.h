// A part of a text.
#pragma once

#include <cstddef>

namespace penelope {

struct TextRange {
    size_t begin, end; // bytes
};

} // namespace penelope
