#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>

namespace penelope {

double lr_factor(int64_t update, int64_t n_updates, int64_t n_warmup) {
    if (update <= n_warmup) {
        return double(update) / double(n_warmup);
    }
    const double pi = std::acos(-1.0);
    return 0.5 * (1.0 + std::cos(pi * double(update - n_warmup) / double(n_updates - n_warmup + 1)));
}

int64_t warmup_updates(int64_t n_updates, double share) {
    // 0.05 is slightly above 5 % in binary; without the tolerance 5 % of 100 would round up to 6.
    return std::min(n_updates, int64_t(std::ceil(double(n_updates) * share - 1e-9)));
}

} // namespace penelope
