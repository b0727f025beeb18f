#include "train/rank_sync.h"

namespace penelope {

namespace {

using BufferKind = Optimizer::BufferKind;

void broadcast_values(Collective & ranks, Optimizer & optimizer, BufferKind part) {
    for (int group = 0; group < optimizer.n_groups(); group++) {
        std::vector<float> values = optimizer.read(group, part);
        ranks.broadcast(values.data(), values.size() * sizeof(float));
        optimizer.write(group, part, values);
    }
}

} // namespace

void all_reduce_gradients(Collective & ranks, Optimizer & optimizer) {
    if (ranks.size() == 1) {
        return;
    }
    for (int group = 0; group < optimizer.n_groups(); group++) {
        optimizer.modify(group, BufferKind::gradients,
                         [&](float * values, size_t n) { ranks.all_reduce_sum(values, n); });
    }
}

void broadcast_parameters(Collective & ranks, Optimizer & optimizer, CheckpointContents parts) {
    if (ranks.size() == 1) {
        return;
    }
    broadcast_values(ranks, optimizer, BufferKind::weights);
    if (parts == CheckpointContents::weights_and_moments) {
        broadcast_values(ranks, optimizer, BufferKind::first_moments);
        broadcast_values(ranks, optimizer, BufferKind::second_moments);
        int64_t n_steps = optimizer.step_count();
        ranks.broadcast(&n_steps, sizeof(n_steps));
        optimizer.set_step_count(n_steps);
    }
}

void broadcast_state(Collective & ranks, RunState & state) {
    ranks.broadcast(&state.update, sizeof(state.update));
    ranks.broadcast(&state.validated, sizeof(state.validated));
    ranks.broadcast(&state.progress, sizeof(state.progress));
    ranks.broadcast(&state.best, sizeof(state.best));
    ranks.broadcast(&state.seconds, sizeof(state.seconds));
    size_t n_depths = state.depths.size();
    ranks.broadcast(&n_depths, sizeof(n_depths));
    state.depths.resize(n_depths);
    ranks.broadcast(state.depths.data(), n_depths * sizeof(DepthRecord));
    size_t n = state.settings.size();
    ranks.broadcast(&n, sizeof(n));
    state.settings.resize(n);
    ranks.broadcast(state.settings.data(), n);
}

} // namespace penelope
