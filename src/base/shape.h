// Shapes as lists of extents.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace penelope {

inline int64_t n_elements(const std::vector<int64_t> & ne) {
    return std::accumulate(ne.begin(), ne.end(), int64_t(1), std::multiplies<int64_t>());
}

} // namespace penelope
