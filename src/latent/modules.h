// Penelope's trainable modules as a plain set of nodes, and the numbers that shape the latent trajectory.
#pragma once

#include "graph/ops.h"

namespace penelope {

enum class Transition {
    gru,       // Equations 5 to 10
    overwrite, // M_t = H_t, the direct-overwrite control
};

struct LatentShape {
    int        start      = 0; // recurrent interval [start, end)
    int        end        = 0;
    int        n_memory   = 8; // m
    int        n_readout  = 2; // q
    int        k_max      = 8;
    Transition transition = Transition::gru;

    int n_interface() const { return n_memory + n_readout; }
};

struct Gru {
    Linear input, hidden; // [d, 3d]: rows r, z, n
};

struct LayerNorm {
    Node weight = nullptr, bias = nullptr; // [d]
};

struct PenelopeModules {
    Node      memory_anchor  = nullptr; // A, [d, m]
    Node      memory_group   = nullptr; // G, [d, m]
    Node      memory_step    = nullptr; // e_t, [d, k_max]
    Node      readout_anchor = nullptr; // Q, [d, q]
    Node      readout_step   = nullptr; // e^R_t, [d, k_max]
    Linear    time_in, time_out;        // [2, h], [h, 2d+1]
    LayerNorm adapter_norm;
    Linear    adapter_down, adapter_up; // [d, b], [b, d]
    Gru       memory_gru;
    LayerNorm proj_norm;
    Linear    proj; // [d, q*d]
    Gru       readout_gru;
};

} // namespace penelope
