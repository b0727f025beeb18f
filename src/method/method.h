// How a method fills the context before the answer. The implementations stand in method/registry.h; nobody asks which one
// it has.
#pragma once

#include "method/context.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace penelope {

using Tokens = std::vector<int32_t>;

// A sequence to be filled, and what its stream already holds of it.
struct Prompt {
    Tokens tokens;
    int    stream   = 0;
    int    n_cached = 0; // leading tokens whose rows still stand in the stream; fewer than there are tokens
};

// How many leading tokens of the prompt to keep when these stand in its stream: a graph for a shorter rest costs more than a
// few rows.
int reusable_prefix(const Tokens & cached, const Tokens & prompt, int bucket);

// The same for who promises that an answer does not depend on what was kept: what is left of a chunk of n_batch rows meets the
// kernels that its rows would meet in the whole.
int bitexact_prefix(const Tokens & cached, const Tokens & prompt, const ContextOptions & options);

// The prompts on streams 0, 1, ... with nothing kept.
std::vector<Prompt> fresh_prompts(const std::vector<Tokens> & prompts);

// What stands in the context after filling, one entry per sequence where it is a list.
struct Prefill {
    std::vector<std::vector<float>> logits; // for the first answer token
    std::vector<int>                n_past; // places taken; the answer goes on from here
    int                             layer_applications = 0;
    // How little the last latent step turned each readout, as a cosine; empty where nobody looked.
    std::vector<float> step_cosine;
};

struct StateTensor {
    std::string          name; // as in the reference: "H_x", "M_0", ...
    std::vector<int64_t> shape;
    std::vector<float>   data;
};

class LatentSteps;

class Method {
  public:
    virtual ~Method() = default;

    virtual std::string name() const = 0;
    // Steps taken when the caller does not say, and the most that are possible (0: the method has no such notion).
    virtual int default_steps() const { return 0; }
    virtual int max_steps() const { return 0; }
    // Rows that stand between prompt and answer for K steps. The rows of the prompt are those of plain text whatever the
    // method, so any later prompt on the stream may keep them; the answer's only if there are none in between.
    virtual int n_extra_rows(int /*n_steps*/) const { return 0; }

    // Fills the streams of the prompts, each a different one. The caller has checked lengths and K.
    virtual Prefill prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const = 0;

    // Prompts at several K in ascending order, calling `answer` after each K is in place: it may decode into the rows that
    // follow. The default fills anew for each K.
    virtual void sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                       const std::function<void(int n_steps, const Prefill &)> & answer) const;

    // The method a step at a time, kept with the context; null: it has no latent steps.
    virtual LatentSteps * steps(Context & context) const;

    // The intermediate states of one prompt; empty when the method has none.
    virtual std::vector<StateTensor> states(Context & context, const Prompt & prompt, int n_steps) const;
};

// Throws Error(usage) naming the range when K is outside 0 .. max_steps().
void check_steps(const Method & method, int n_steps);

// check_steps(), and throws Error(usage) for an empty prompt, or prompt + extra rows + 1 beyond the context.
void check_request(const Method & method, const Context & context, const std::vector<Tokens> & prompts, int n_steps);

} // namespace penelope
