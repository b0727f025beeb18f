// Runs a latent method one step at a time. The latent state of each sequence stays on the device between steps, so
// sequences of a batch may be at different steps, halt at different steps, and be inspected after each step.
//
// Order of calls for a stream: start, any number of advance, finish. After finish the answer may be decoded into the
// rows that follow; advance may be called again, because neither the answer nor the interface rows are read by a step.
// Streams are independent of each other, and a stream may be started anew at any time.
//
// All of them run the same code, run(): it builds the graph of any run of consecutive parts (prompt, latent steps,
// final pass). For a fixed K prefill() takes all parts in one graph, without a host round trip between them.
#pragma once

#include "method/layer_attention.h"
#include "method/method.h"

namespace penelope {

class LatentSteps : public ContextExtension {
  public:
    // Method and context outlive it.
    LatentSteps(const Method & method, Context & context);

    // Prefills the prompts into their streams; each is then at step 0. The caller has checked lengths.
    void start(const std::vector<Prompt> & prompts);

    // One latent step for each of these streams. The caller has checked that none is at the last step.
    void advance(const std::vector<int> & streams);

    // The final pass: prepares the context for decoding the answer from the current step of each stream. Results in the
    // order of `streams`.
    Prefill finish(const std::vector<int> & streams);

    // start, n_steps times advance, finish: in one graph. No latent state stays on the device: only start may follow.
    Prefill prefill(const std::vector<Prompt> & prompts, int n_steps);

    int step(int stream) const { return at(stream).t; }

    // Sequential layer applications for a stream since its start, the last finish included.
    int layer_applications(int stream) const { return at(stream).n_step_applications + at(stream).n_final; }

    // The latent state of a stream. Penelope: "M", "R" and, from step 1 on, "H". Coconut and CODI: the next thought as
    // "R". Shapes [rows, d]. Penelope also has "alpha", a number, from step 1 on.
    virtual std::vector<StateTensor> read_state(int stream) const = 0;

    // How the step just taken attended to the prompt, layer by layer; computed once more from the state before that
    // step (read_state). Empty at step 0, and for methods whose latent rows have no fixed place.
    virtual std::vector<LayerAttention> attention(int /*stream*/, const std::vector<StateTensor> & /*before*/) {
        return {};
    }

    // All intermediate states of prefill() for one prompt, under their names in the reference.
    virtual std::vector<StateTensor> states(const Prompt & prompt, int n_steps) = 0;

  protected:
    // Consecutive parts of a question that one graph computes.
    struct Pass {
        std::vector<int>    streams;
        std::vector<Prompt> prompts;     // of the streams; empty: they go on from their latent state on the device
        int                 n_steps = 0; // latent steps; at most 1 without prompts
        bool                finish  = false;
    };
    struct PassResult {
        std::vector<std::vector<float>> logits; // after the final pass
        int                             layer_applications = 0;
    };
    virtual PassResult run(const Pass & pass) = 0;

    // Progress of a stream.
    struct StreamState {
        int n_prompt            = 0; // tokens
        int t                   = 0;
        int n_step_applications = 0; // layer applications of start and steps
        int n_final             = 0; // and of the final pass; > 0: an answer may have been decoded since
    };
    const StreamState & at(int stream) const { return streams_[size_t(stream)]; }
    StreamState &       at(int stream) { return streams_[size_t(stream)]; }

    // Rows [row, row + count) counted from the end of each stream's prompt, `row` given by the caller. n_kv is that of
    // the longest, rounded up, so that one graph serves many lengths; the mask hides the rest.
    std::vector<SeqRange> rounded_ranges(const std::vector<int> & streams, const std::function<int(int stream)> & row,
                                         int count) const;

    Context & context_;

  private:
    void    begin(const std::vector<Prompt> & prompts);
    Prefill finished(const std::vector<int> & streams, PassResult result);

    const Method &           method_base_;
    std::vector<StreamState> streams_;
};

// The streams of the prompts.
std::vector<int> streams_of(const std::vector<Prompt> & prompts);

// Smallest cosine between a readout row of the previous step and the same row now; 1: unchanged. -1 without readouts.
float readout_cosine(const std::vector<StateTensor> & before, const std::vector<StateTensor> & now);

} // namespace penelope
