// Ridge regression: the linear map, with bias, that sends inputs to outputs with the smallest weighted squared error.
#pragma once

#include <cstddef>
#include <vector>

namespace penelope {

struct LinearMap {
    std::vector<float> weight; // [n_out][n_in]
    std::vector<float> bias;   // [n_out]
};

// x: [n][n_in], y: [n][n_out], importance: [n], positive. The penalty is relative to the variance of each input, so
// that the result does not depend on the scale of the inputs. Needs n >= 1.
LinearMap fit_ridge(const std::vector<float> & x, const std::vector<float> & y, const std::vector<float> & importance,
                    size_t n_in, size_t n_out, double penalty);

} // namespace penelope
