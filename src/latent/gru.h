// The gated recurrent unit of Equations 9 and 12, as in PyTorch:
//   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
//   z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
//   n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
//   h' = (1 - z) n + z h
#pragma once

#include "latent/modules.h"

namespace penelope {

Node gru_cell(Graph & g, const Gru & gru, Node x, Node h); // x, h, result: [d, rows]

} // namespace penelope
