#include "train/teacher_forcing.h"

#include <algorithm>

namespace penelope {

double free_share(double forced, int64_t update, int64_t n_updates) {
    const double done = double(update) / double(std::max<int64_t>(1, n_updates));
    return 1.0 - forced * std::min(1.0, 2.0 * (1.0 - done));
}

void force_memory(Minibatch & batch, double free_share, Rng rng) {
    for (TokenizedExample & example : batch.examples) {
        // Both are drawn for every example: the draws of one do not depend on another.
        const bool is_free  = rng.chance(free_share);
        const int  n_forced = 1 + int(rng.uniform() * std::max(1, batch.n_steps - 1));
        const bool says     = !example.step_targets.empty() && !example.step_targets.front().empty();
        example.n_forced    = is_free || !says || batch.n_steps < 2 ? 0 : n_forced;
    }
}

} // namespace penelope
