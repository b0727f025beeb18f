#include "method/latent_steps.h"

#include <cmath>
#include <numeric>

namespace penelope {

namespace {

double dot(const float * a, const float * b, int64_t n) {
    return std::inner_product(a, a + n, b, 0.0);
}

} // namespace

float readout_cosine(const std::vector<StateTensor> & before, const std::vector<StateTensor> & now) {
    const StateTensor * a = find_state(before, "R");
    const StateTensor * b = find_state(now, "R");
    if (!a || !b) {
        return -1.0f;
    }
    const int64_t d     = b->shape[1];
    double        least = 1.0;
    for (int64_t row = 0; row < b->shape[0]; row++) {
        const float * x     = a->data.data() + row * d;
        const float * y     = b->data.data() + row * d;
        const double  norms = std::sqrt(dot(x, x, d) * dot(y, y, d));
        const double  turn  = norms > 0 ? dot(x, y, d) / norms : -1.0;
        least               = turn >= least ? least : turn; // also for NaN
    }
    return float(least);
}

} // namespace penelope
