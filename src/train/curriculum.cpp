#include "train/curriculum.h"

#include <algorithm>

namespace penelope {

Curriculum::Curriculum(int64_t n_updates, int n_blocks, int depth) {
    if (n_blocks == 0) {
        stages_.push_back({ 1, n_updates, 0, 0, true });
        return;
    }
    const int64_t n_staged = n_updates / 2;
    int64_t       first    = 1;
    for (int u = 1; u <= n_blocks; u++) {
        const int64_t last = n_updates * u / (2 * n_blocks);
        if (last >= first) {
            stages_.push_back({ first, last, std::min(u, depth), u, false });
        }
        first = last + 1;
    }
    stages_.push_back({ n_staged + 1, n_updates, depth, kAnswerOnly, true });
}

const Stage & Curriculum::at(int64_t update) const {
    const auto found =
        std::find_if(stages_.begin(), stages_.end(), [update](const Stage & stage) { return update <= stage.last; });
    return found == stages_.end() ? stages_.back() : *found;
}

std::string stage_text(const Stage & stage) {
    const std::string depth = "K=" + std::to_string(stage.n_steps);
    return stage.n_latent == kAnswerOnly ? depth + " answer" : depth + " u=" + std::to_string(stage.n_latent);
}

} // namespace penelope
