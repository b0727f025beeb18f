// The recurrent answer interface: Equations 11 and 12 of the paper.
#pragma once

#include "latent/time.h"

namespace penelope {

// Equation 11: q_t = P_R(mean over memory of H_t + e^R_t), [d, m * n] -> [d, q * n].
Node readout_proposal(Graph & g, const PenelopeModules & modules, const LatentShape & shape, const TimeStep & step,
                      Node features);

// Equation 12: R_t = GRU_R(q_t, R_{t-1}).
Node update_readout(Graph & g, const PenelopeModules & modules, Node proposal, Node readout);

} // namespace penelope
