// Latent trace: norms of the latent states, cosine to the previous step, and their top tokens through the output head.
#pragma once

#include "infer/session.h"
#include "method/method.h"

namespace penelope {

class Tokenizer;

// states: of Session::dump() under Penelope. Throws Error(usage) when they hold no memory states.
std::vector<TraceStep> trace_states(Context & context, const Tokenizer & tokenizer,
                                    const std::vector<StateTensor> & states);

// One step from what a stream holds after it ("M", "R", "H", see LatentSteps::look) and held before; `before` may be
// empty.
TraceStep trace_step(Context & context, const Tokenizer & tokenizer, int t, const std::vector<StateTensor> & now,
                     const std::vector<StateTensor> & before);

} // namespace penelope
