// A latent method a step at a time. What each sequence thinks stays on the device between steps, so that sequences may stand
// at different steps, stop when they have thought enough, and be looked at on the way.
//
// Order of calls for a stream: start, any number of advance, finish. After finish the answer may be decoded into the rows that
// follow; advance may be called again, because neither the answer nor the interface rows are read by a step. Streams are
// independent of each other, and a stream may be started anew at any time.
#pragma once

#include "method/method.h"

namespace penelope {

class LatentSteps : public ContextExtension {
  public:
    // Reads prompts into their streams; each then stands at step 0. The caller has checked lengths.
    virtual void start(const std::vector<Prompt> & prompts) = 0;

    // One step for each of these streams. The caller has checked that none stands at the last step already.
    virtual void advance(const std::vector<int> & streams) = 0;

    // Fills the context for the answer from the step each of these streams stands at; entries in the order of `streams`.
    virtual Prefill finish(const std::vector<int> & streams) = 0;

    virtual int step(int stream) const = 0;

    // Sequential layer applications for a stream since its start, the last finish included.
    virtual int layer_applications(int stream) const = 0;

    // What a stream holds, in the terms of Method::states: "M", "R" and, from step 1 on, "H" under Penelope; the next thought
    // as "R" under Coconut and CODI. Shapes [rows, d].
    virtual std::vector<StateTensor> read_state(int stream) const = 0;
};

// The smallest cosine between rows of the readouts a stream held before and now; 1: none has turned. -1 without readouts.
float readout_cosine(const std::vector<StateTensor> & before, const std::vector<StateTensor> & now);

} // namespace penelope
