// What the latent states look like from outside: norms, how far a step moves, and the words they are nearest to.
#pragma once

#include "infer/session.h"
#include "method/context.h"

namespace penelope {

class Tokenizer;

// states: of Session::dump() under Penelope. Throws Error(usage) when they hold no memory states.
std::vector<TraceStep> trace_states(Context & context, const Tokenizer & tokenizer,
                                    const std::vector<DumpTensor> & states);

} // namespace penelope
