// How the latent rows of one step attended to the prompt in one layer.
#pragma once

#include <vector>

namespace penelope {

struct LayerAttention {
    int                layer   = 0;
    int                n_heads = 0, n_rows = 0, n_positions = 0; // positions: of the prompt
    std::vector<float> weights; // [n_heads][n_rows][n_positions]; what is missing to 1 went to the latent rows
};

} // namespace penelope
