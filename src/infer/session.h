// One mutable timeline on a shared Engine: caches, reusable graphs, and generation.
// A session is used by one thread at a time; several sessions may run at once on one Engine.
#pragma once

#include "infer/engine.h"
#include "infer/sampler.h"
#include "method/layer_attention.h"
#include "method/state_tensor.h"
#include "text/reasoning.h"
#include "text/tool_call.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

class Context;
struct Grammar;
struct ToolSet;

struct SessionOptions {
    int       n_ctx           = 0;             // context size in tokens; 0: min(4096, n_ctx_train)
    ggml_type kv_type         = GGML_TYPE_F16; // F32, F16, BF16 or Q8_0
    int       n_threads       = 0;             // 0: default_thread_count()
    int       n_batch         = 512;           // prompt tokens per graph
    int       n_streams       = 1;             // maximum batch size of generate_batch
    int       bucket          = 0;     // prompt lengths are rounded up to a multiple; 0: 1 on the CPU, 32 elsewhere
    bool      swap_latents    = false; // generate_sweep answers from the memory of another question of its batch
    bool      batch_invariant = false; // same bits alone and in a batch; slower for some types
};

// For n_steps: halt by itself, with the sidecar's threshold (-K auto).
constexpr int kAutoSteps = -2;

struct GenerateOptions {
    std::string                    method;           // see Engine::method
    int                            n_steps     = -1; // K; -1: the sidecar's k_default; kAutoSteps
    float                          halt_cosine = 0;  // with kAutoSteps: the threshold, 0: the sidecar's
    int                            n_predict   = -1; // new tokens at most; -1: until the context is full
    SamplingOptions                sampling;
    bool                           ignore_end = false;               // go on to n_predict whatever comes, for measuring
    std::vector<std::string>       stop;                             // the answer ends before the first of these
    std::shared_ptr<const Grammar> grammar;                          // the answer is a text of it; null: any text
    ReasoningStart                 reasoning = ReasoningStart::none; // how a visible chain of thought begins
    std::shared_ptr<const ToolSet> tools; // calls of these are told from the text; null: none
    // Leading tokens of the prompt that the next one of the conversation shares, whatever the answer says; 0: nobody
    // knows. Recurrent layers keep their state there.
    int n_stable_prefix = 0;
    int n_logprobs      = -1; // keep the probability of each token and of so many best ones; -1: none
    // Give the callback of latent steps their attention too, which costs another pass of the interval a step.
    bool attention = false;
};

struct Timings {
    double load_ms   = 0;
    double prompt_ms = 0; // everything before the first answer token; of prompts side by side, its share by length
    double decode_ms = 0;
    double tokens_per_second = 0; // answer tokens over decode_ms
};

// A token and the natural logarithm of its probability.
struct TokenLogprob {
    int32_t token;
    float   logprob;
};

enum class FinishReason { stop, length, cancelled };

const char * finish_reason_name(FinishReason reason);

struct Answer {
    std::string           text;
    std::string           reasoning;       // the visible chain of thought before it, and ...
    int                   n_reasoning = 0; // ... how many of the tokens it took, its marks included
    std::vector<ToolCall> tool_calls;
    std::vector<int32_t>  tokens;             // as generated, the end token included when it came
    float                 step_cosine   = -1; // of the last latent step where steps were looked at, see method/method.h
    int                   n_prompt      = 0;
    FinishReason          finish_reason = FinishReason::stop;
    std::string           method;
    int                   n_steps = 0; // K as used
    int     layer_applications    = 0; // sequential, before the first answer token, counted in the executed graphs
    Timings timings;
    std::vector<std::vector<TokenLogprob>> logprobs; // for each token: itself, then the best ones; only when asked for
    std::string                            stopped_by; // the stop string that ended the answer, "" for none
};

// Called with each piece of text that is whole in UTF-8 (may be empty) and the token that completed it. False stops.
using TokenCallback = std::function<bool(std::string_view text, int32_t token)>;

// Called with each piece of the visible chain of thought.
using ReasoningCallback = std::function<void(std::string_view text)>;

// A row of the latent trace: what `run --trace` writes.
struct TokenScore {
    int32_t     token;
    std::string text;
    float       logit;
};
struct TraceStep {
    int                                  t = 0; // 0: the boundary state
    std::vector<float>                   memory_norms, readout_norms;
    std::vector<float>                   memory_cosines, readout_cosines; // to the step before; empty at t = 0
    float                                alpha = 0;
    std::vector<std::vector<TokenScore>> memory_top, readout_top; // five best per row, through final norm and head
    std::vector<std::vector<TokenScore>> features_top; // likewise of H_t, what the step computed; empty at t = 0
    // M_t, R_t and H_t, row after row of n_embd numbers each; empty where the method has none.
    std::vector<float>          memory, readout, features;
    std::vector<LayerAttention> attention;              // only where it was asked for; empty at t = 0
    int                         layer_applications = 0; // sequential, up to and including this step
};

// Called after each latent step, t = 0 being the boundary. False: it has thought enough, and answers.
using StepCallback = std::function<bool(const TraceStep & step)>;

class Session {
  public:
    Session(std::shared_ptr<const Engine> engine, const SessionOptions & options);
    ~Session();

    const Engine &         engine() const;
    const SessionOptions & options() const;      // with every default resolved
    size_t                 memory_bytes() const; // caches and graph buffers so far
    Context &              context();            // for measuring and tests

    // Answers one prompt. The part of the prompt that is already in the cache is not computed again. Throws
    // Error(usage) when the prompt is empty or does not fit the context (naming both numbers), or K is out of range.
    // on_step: the steps are then taken one by one; needs a latent method.
    Answer generate(const std::vector<int32_t> & prompt, const GenerateOptions & options,
                    const TokenCallback & on_token = {}, const StepCallback & on_step = {},
                    const ReasoningCallback & on_reasoning = {});

    // Answers several prompts side by side, at most options().n_streams; a row of one never sees another's.
    std::vector<Answer> generate_batch(const std::vector<std::vector<int32_t>> & prompts,
                                       const GenerateOptions &                   options);

    // Several prompts, each at several K (ascending): boundary, prompt cache and refinements are computed once. One
    // list of answers per K, in the order of `steps`; prompt_ms of an answer is its share of the common work and its
    // final pass.
    std::vector<std::vector<Answer>> generate_sweep(const std::vector<std::vector<int32_t>> & prompts,
                                                    const std::vector<int> & steps, const GenerateOptions & options);

    // The logits of the first token of each answer, side by side, at most options().n_streams. Uses method and n_steps
    // of the options.
    std::vector<std::vector<float>> logits(const std::vector<std::vector<int32_t>> & prompts,
                                           const GenerateOptions &                   options);

    // The latent trajectory of one prompt, for people who want to look inside. trace() needs Penelope, dump() any
    // latent method. on_step is called after each step; false: no more.
    std::vector<TraceStep>   trace(const std::vector<int32_t> & prompt, int n_steps, bool attention = false,
                                   const StepCallback & on_step = {});
    std::vector<StateTensor> dump(const std::vector<int32_t> & prompt, int n_steps);

    // Forgets the cached timeline.
    void clear();

    // May be called from another thread or a signal handler. Ends the running call, or the next one where none runs.
    // generate() then returns FinishReason::cancelled, and so do the others once answers are being written; before that
    // they throw Error(cancelled). A request stays pending until a call has ended because of it.
    void cancel();
    // Drops a pending request, for one that came too late for the call it was meant for.
    void reset_cancel();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace penelope
