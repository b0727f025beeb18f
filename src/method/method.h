// Interface of a method (plain, cot, penelope, coconut, codi): prefill the prompt and run the latent steps, up to the
// logits of the first answer token. A method with latent steps implements steps(), one without prefill().
// method/registry.h lists the implementations; no other code depends on which one it has.
#pragma once

#include "method/context.h"
#include "method/state_tensor.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace penelope {

using Tokens = std::vector<int32_t>;

// A prompt to prefill, and how much of it is already in the stream's cache.
struct Prompt {
    Tokens tokens;
    int    stream   = 0;
    int    n_cached = 0; // leading tokens already in the cache; less than the number of tokens
};

// How many leading tokens of the prompt to reuse from the cache. May be less than possible: building a graph for
// another length costs more than recomputing a few rows.
int reusable_prefix(const Tokens & cached, const Tokens & prompt, int bucket);

// Where rows [begin, end) of a chunk can be cut in two with the same bits as uncut: at most at n, because both parts
// must be long enough for the same kernels. begin: nowhere.
int bitexact_split(int begin, int n, int end);

// The same when the result must be bit-identical to a prefill without reuse.
int bitexact_prefix(const Tokens & cached, const Tokens & prompt, const ContextOptions & options);

// The prompts on streams 0, 1, ... with nothing cached.
std::vector<Prompt> fresh_prompts(const std::vector<Tokens> & prompts);

// Result of a prefill; lists have one entry per sequence.
struct Prefill {
    std::vector<std::vector<float>> logits; // for the first answer token
    std::vector<int>                n_past; // rows used in the stream; decoding continues here
    int                             layer_applications = 0;
    // Cosine between the readouts of the last two latent steps; empty when not computed.
    std::vector<float> step_cosine;
};

class LatentSteps;

class Method {
  public:
    virtual ~Method() = default;

    virtual std::string name() const = 0;
    // Default and maximum K (0: the method has no latent steps).
    virtual int default_steps() const { return 0; }
    virtual int max_steps() const { return 0; }
    // Rows that stand between prompt and answer for K steps. The rows of the prompt are those of plain text whatever
    // the method, so any later prompt on the stream may keep them; the answer's only if there are none in between.
    virtual int n_extra_rows(int /*n_steps*/) const { return 0; }

    // Prefills the prompts, each on a different stream, and runs K latent steps. The caller has checked lengths and K.
    virtual Prefill prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const;

    // Prompts at several K in ascending order, calling `answer` after each K is in place: it may decode into the rows
    // that follow. The default fills anew for each K.
    virtual void sweep(Context & context, const std::vector<Tokens> & prompts, const std::vector<int> & steps,
                       const std::function<void(int n_steps, const Prefill &)> & answer) const;

    // The step-by-step form of the method, owned by the context; null: no latent steps.
    virtual LatentSteps * steps(Context & context) const;

    // The intermediate states of one prompt; empty when the method has none.
    std::vector<StateTensor> states(Context & context, const Prompt & prompt, int n_steps) const;
};

// Throws Error(usage) naming the range when K is outside 0 .. max_steps().
void check_steps(const Method & method, int n_steps);

// check_steps(), and throws Error(usage) for an empty prompt, or prompt + extra rows + 1 beyond the context.
void check_request(const Method & method, const Context & context, const std::vector<Tokens> & prompts, int n_steps);

} // namespace penelope
