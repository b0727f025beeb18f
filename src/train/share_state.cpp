#include "train/share_state.h"

namespace penelope {

namespace {

using Part = Optimizer::Part;

void share_values(Collective & ranks, Optimizer & optimizer, Part part) {
    for (int group = 0; group < optimizer.n_groups(); group++) {
        std::vector<float> values = optimizer.read(group, part);
        ranks.share(values.data(), values.size() * sizeof(float));
        optimizer.write(group, part, values);
    }
}

} // namespace

void sum_gradients(Collective & ranks, Optimizer & optimizer) {
    if (ranks.size() == 1) {
        return;
    }
    for (int group = 0; group < optimizer.n_groups(); group++) {
        optimizer.change(group, Part::gradients, [&](float * values, size_t n) { ranks.sum(values, n); });
    }
}

void share_parameters(Collective & ranks, Optimizer & optimizer, CheckpointParts parts) {
    if (ranks.size() == 1) {
        return;
    }
    share_values(ranks, optimizer, Part::weights);
    if (parts == CheckpointParts::weights_and_moments) {
        share_values(ranks, optimizer, Part::first_moments);
        share_values(ranks, optimizer, Part::second_moments);
        int64_t n_steps = optimizer.n_steps();
        ranks.share(&n_steps, sizeof(n_steps));
        optimizer.set_n_steps(n_steps);
    }
}

void share_state(Collective & ranks, RunState & state) {
    ranks.share(&state.update, sizeof(state.update));
    ranks.share(&state.scored, sizeof(state.scored));
    ranks.share(&state.place, sizeof(state.place));
    ranks.share(&state.best, sizeof(state.best));
    ranks.share(&state.seconds, sizeof(state.seconds));
    size_t n_depths = state.depths.size();
    ranks.share(&n_depths, sizeof(n_depths));
    state.depths.resize(n_depths);
    ranks.share(state.depths.data(), n_depths * sizeof(DepthRecord));
    size_t n = state.settings.size();
    ranks.share(&n, sizeof(n));
    state.settings.resize(n);
    ranks.share(state.settings.data(), n);
}

} // namespace penelope
