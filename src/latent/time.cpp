#include "latent/time.h"

namespace penelope {

std::vector<float> time_coordinates(const LatentShape & shape, int n_steps) {
    std::vector<float> rows;
    for (int t = 1; t <= n_steps; t++) {
        rows.push_back(float(t) / float(shape.k_max));
        rows.push_back(1.0f / float(shape.k_max));
    }
    return rows;
}

std::vector<TimeStep> time_network(Graph & g, const PenelopeModules & modules, const LatentShape & shape,
                                   Node coordinates) {
    const int64_t d = modules.memory_group->ne[0];

    Node hidden      = silu(g, linear(g, modules.time_in, coordinates)); // [h, K]
    Node out         = linear(g, modules.time_out, hidden);              // [2d+1, K], Equation 5
    Node gain        = scale(g, tanh(g, slice_features(g, out, 0, d)), 0.1f, 1.0f);
    Node shift       = scale(g, slice_features(g, out, d, d), 0.1f);
    Node update_rate = scale(g, tanh(g, slice_features(g, out, 2 * d, 1)), 0.25f, 0.5f); // half of Equation 8

    std::vector<TimeStep> steps;
    for (int t = 0; t < int(coordinates->ne[1]); t++) {
        Node step   = slice_rows(g, modules.memory_step, t, 1); // [d]
        Node offset = add(g, modules.memory_group, step);       // [d, m]
        steps.push_back({ reshape_rows(g, offset, d * shape.n_memory, 1), slice_rows(g, modules.readout_step, t, 1),
                          slice_rows(g, gain, t, 1), slice_rows(g, shift, t, 1), slice_rows(g, update_rate, t, 1) });
    }
    return steps;
}

} // namespace penelope
