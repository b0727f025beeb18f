// Runs a latent method one step at a time. The latent state of each sequence stays on the device between steps, so
// sequences of a batch may be at different steps, halt at different steps, and be inspected after each step.
//
// Order of calls for a stream: start, any number of advance, finish. After finish the answer may be decoded into the
// rows that follow; advance may be called again, because neither the answer nor the interface rows are read by a step.
// Streams are independent of each other, and a stream may be started anew at any time.
#pragma once

#include "method/layer_attention.h"
#include "method/method.h"

namespace penelope {

class LatentSteps : public ContextExtension {
  public:
    // Prefills the prompts into their streams; each is then at step 0. The caller has checked lengths.
    virtual void start(const std::vector<Prompt> & prompts) = 0;

    // One latent step for each of these streams. The caller has checked that none is at the last step.
    virtual void advance(const std::vector<int> & streams) = 0;

    // The final pass: prepares the context for decoding the answer from the current step of each stream. Results in the
    // order of `streams`.
    virtual Prefill finish(const std::vector<int> & streams) = 0;

    virtual int step(int stream) const = 0;

    // Sequential layer applications for a stream since its start, the last finish included.
    virtual int layer_applications(int stream) const = 0;

    // The latent state of a stream. Penelope: "M", "R" and, from step 1 on, "H". Coconut and CODI: the next thought as
    // "R". Shapes [rows, d]. Penelope also has "alpha", a number, from step 1 on.
    virtual std::vector<StateTensor> read_state(int stream) const = 0;

    // How the step just taken attended to the prompt, layer by layer; computed once more from the state before that
    // step (read_state). Empty at step 0, and for methods whose latent rows have no fixed place.
    virtual std::vector<LayerAttention> attention(int /*stream*/, const std::vector<StateTensor> & /*before*/) {
        return {};
    }
};

// Smallest cosine between a readout row of the previous step and the same row now; 1: unchanged. -1 without readouts.
float readout_cosine(const std::vector<StateTensor> & before, const std::vector<StateTensor> & now);

} // namespace penelope
