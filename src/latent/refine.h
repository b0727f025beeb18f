// Localized recurrent refinement: Equations 4 and 6 to 10 of the paper.
#pragma once

#include "latent/time.h"
#include "model/backbone.h"

namespace penelope {

// Equation 4: H_t = F_[s:e)(M_{t-1} + G + e_t ; C_x) at the memory rows. memory: [d, m * n] for n sequences side by
// side.
Node interval_features(Graph & g, const Backbone & model, const LatentShape & shape, const TimeStep & step, Node memory,
                       const RowLayout & rows, SequenceState & kv);

// Equations 6 and 7: H^ = H~ + A_phi(H~), H~ = gain * H_t + shift.
Node modulate(Graph & g, const PenelopeModules & modules, const TimeStep & step, Node features);

// Equations 9 and 10: M_t = M_{t-1} + 0.5 alpha_t (GRU_M(H^, M_{t-1}) - M_{t-1}).
Node update_memory(Graph & g, const PenelopeModules & modules, const TimeStep & step, Node modulated, Node memory);

} // namespace penelope
