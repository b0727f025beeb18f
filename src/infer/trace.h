// Latent trace: norms of the latent states, cosine to the previous step, and their top tokens through the output head.
#pragma once

#include "infer/session.h"
#include "method/latent_steps.h"

namespace penelope {

class Tokenizer;

// The step a stream has just taken. `before`: its state before (LatentSteps::read_state), empty at step 0; it becomes
// the state now.
TraceStep trace_step(Context & context, const Tokenizer & tokenizer, LatentSteps & steps, int stream,
                     std::vector<StateTensor> & before, bool attention);

} // namespace penelope
