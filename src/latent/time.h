// What depends on the step alone, not on the question: time modulation and step embeddings (Equations 4, 5, 6, 8 and
// 11). Training computes it in its graph so that gradients reach the time network; inference computes it once, at load,
// and keeps tables. Both go through time_network().
#pragma once

#include "latent/modules.h"

#include <vector>

namespace penelope {

// Everything one refinement needs to know about its step. In brackets: where the n sequences stand at different steps.
struct TimeStep {
    Node memory_offset; // G + e_t, [d * m] ([d * m, n])
    Node readout_step;  // e^R_t, [d] ([d, n])
    Node gain;          // 1 + 0.1 tanh(gamma_t), [d] ([d, m * n])
    Node shift;         // 0.1 beta_t, [d] ([d, m * n])
    Node update_rate;   // 0.5 alpha_t = 0.5 + 0.25 tanh(s_t), [1] ([d, m * n])
};

// Steps 1..n_steps. coordinates: [2, n_steps] with rows [t / k_max, 1 / k_max], see time_coordinates().
std::vector<TimeStep> time_network(Graph & g, const PenelopeModules & modules, const LatentShape & shape,
                                   Node coordinates);

std::vector<float> time_coordinates(const LatentShape & shape, int n_steps);

} // namespace penelope
