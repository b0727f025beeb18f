#include "infer/session.h"

#include "base/clock.h"
#include "base/error.h"
#include "infer/decode_loop.h"
#include "infer/halting.h"
#include "infer/trace.h"
#include "method/decode.h"
#include "sidecar/sidecar.h"
#include "text/tokenizer.h"

#include <algorithm>
#include <numeric>

namespace penelope {

const char * finish_reason_name(FinishReason reason) {
    switch (reason) {
        case FinishReason::stop: return "stop";
        case FinishReason::length: return "length";
        case FinishReason::cancelled: return "cancelled";
    }
    return "unknown";
}

namespace {

constexpr int kDefaultContext = 4096;
constexpr int kGpuBucket      = 32; // on a GPU building a graph costs more than a few padded rows

SessionOptions resolve(const Engine & engine, SessionOptions options) {
    if (options.n_ctx <= 0) {
        options.n_ctx = std::min(kDefaultContext, engine.config().n_ctx_train);
    }
    if (options.n_ctx > engine.config().n_ctx_train) {
        throw Error(ErrorKind::usage,
                    "-c " + std::to_string(options.n_ctx) + ": the model was trained for " +
                        std::to_string(engine.config().n_ctx_train) + " tokens",
                    "use -c " + std::to_string(engine.config().n_ctx_train) + " or less");
    }
    if (options.kv_type != GGML_TYPE_F32 && options.kv_type != GGML_TYPE_F16 && options.kv_type != GGML_TYPE_BF16 &&
        options.kv_type != GGML_TYPE_Q8_0) {
        throw Error(ErrorKind::usage, std::string("cache type ") + ggml_type_name(options.kv_type) + ": not supported",
                    "use f32, f16, bf16 or q8_0");
    }
    if (options.bucket <= 0) {
        options.bucket = engine.split().is_all_cpu() ? 1 : kGpuBucket;
    }
    options.n_batch   = std::max(1, std::min(options.n_batch, options.n_ctx));
    options.n_streams = std::max(1, options.n_streams);
    return options;
}

ContextOptions context_options(const SessionOptions & o) {
    ContextOptions c;
    c.n_streams       = o.n_streams;
    c.n_ctx           = o.n_ctx;
    c.kv_type         = o.kv_type;
    c.n_threads       = o.n_threads;
    c.n_batch         = o.n_batch;
    c.bucket          = o.bucket;
    c.swap_latents    = o.swap_latents;
    c.batch_invariant = o.batch_invariant;
    return c;
}

// The time of a graph is divided among its prompts in proportion to their lengths.
void split_prompt_ms(std::vector<Answer> & answers, double ms) {
    double n_rows = 0;
    for (const Answer & answer : answers) {
        n_rows += answer.n_prompt;
    }
    for (Answer & answer : answers) {
        answer.timings.prompt_ms = ms * answer.n_prompt / n_rows;
    }
}

// A request to cancel and whether the running call has seen it. Whoever sees it ends the call.
class CancelRequest {
  public:
    void set() { requested_ = true; } // also in signal handlers
    void reset() { requested_ = false; }
    bool seen() {
        if (!requested_) {
            return false;
        }
        seen_ = true;
        return true;
    }

    // Stands at the beginning of every call that can be cancelled: a request that ended the call ends no other.
    class Call {
      public:
        explicit Call(CancelRequest & request) : request_(request) {}
        ~Call() {
            if (request_.seen_.exchange(false)) {
                request_.reset();
            }
        }
        Call(const Call &)             = delete;
        Call & operator=(const Call &) = delete;

      private:
        CancelRequest & request_;
    };

  private:
    std::atomic<bool> requested_{ false };
    std::atomic<bool> seen_{ false };
    static_assert(std::atomic<bool>::is_always_lock_free);
};

// RAII: clears the cache unless the request succeeded, because a failed one may leave NaN in it.
class ClearCacheOnFailure {
  public:
    explicit ClearCacheOnFailure(Context & context) : context_(context) {}
    ~ClearCacheOnFailure() {
        if (!done_) {
            try {
                context_.cache().clear();
            } catch (const Error &) { // the device is lost: reported already, and again by the next request
            }
        }
    }
    ClearCacheOnFailure(const ClearCacheOnFailure &)             = delete;
    ClearCacheOnFailure & operator=(const ClearCacheOnFailure &) = delete;
    void                  done() { done_ = true; }

  private:
    Context & context_;
    bool      done_ = false;
};

} // namespace

struct Session::Impl {
    Impl(std::shared_ptr<const Engine> loaded, const SessionOptions & wanted)
        : engine(std::move(loaded)), options(resolve(*engine, wanted)),
          context(engine->backbone(), engine->split().devices, context_options(options)) {
        options.n_threads = context.options().n_threads;
        context.backend().set_abort([](void * request) { return static_cast<CancelRequest *>(request)->seen(); },
                                    &cancel);
        engine->method("").steps(context); // its tables go to the device now, not before the first answer
    }

    std::shared_ptr<const Engine> engine;
    SessionOptions                options;
    Context                       context;
    Tokens                        cached; // tokens in the cache of stream 0, from position 0
    CancelRequest                 cancel;

    Answer              initial_answer(const Method & method, int n_steps, const Tokens & prompt) const;
    HaltingPolicy       plan(const Method & method, const GenerateOptions & wanted) const;
    LatentResult        prefill(const Method & method, const std::vector<Prompt> & prompts, const HaltingPolicy & plan,
                                const StepCallback & on_step, bool attention = false);
    std::vector<Answer> decode_answers(const Prefill & prefilled, std::vector<Answer> initial,
                                       const GenerateOptions & options, const TokenCallback & on_token = {},
                                       const ReasoningCallback & on_reasoning = {});
};

Session::Session(std::shared_ptr<const Engine> engine, const SessionOptions & options)
    : impl_(std::make_unique<Impl>(std::move(engine), options)) {}
Session::~Session() = default;

const Engine & Session::engine() const {
    return *impl_->engine;
}
const SessionOptions & Session::options() const {
    return impl_->options;
}
size_t Session::memory_bytes() const {
    return impl_->context.n_bytes();
}
Context & Session::context() {
    return impl_->context;
}
void Session::clear() {
    impl_->cached.clear();
}
void Session::cancel() {
    impl_->cancel.set();
}
void Session::reset_cancel() {
    impl_->cancel.reset();
}

Answer Session::Impl::initial_answer(const Method & method, int n_steps, const Tokens & prompt) const {
    Answer answer;
    answer.n_prompt        = int(prompt.size());
    answer.method          = method.name();
    answer.n_steps         = n_steps;
    answer.timings.load_ms = engine->load_ms();
    return answer;
}

std::vector<Answer> Session::Impl::decode_answers(const Prefill & prefilled, std::vector<Answer> initial,
                                                  const GenerateOptions & wanted, const TokenCallback & on_token,
                                                  const ReasoningCallback & on_reasoning) {
    DecodeLoop loop(
        context, engine->tokenizer(), engine->config().n_vocab, [&]() { engine->throw_not_finite(); },
        [&]() { return cancel.seen(); });
    return loop.run(prefilled, std::move(initial), wanted, on_token, on_reasoning);
}

HaltingPolicy Session::Impl::plan(const Method & method, const GenerateOptions & wanted) const {
    if (wanted.n_steps != kAutoSteps) {
        return { wanted.n_steps < 0 ? method.default_steps() : wanted.n_steps };
    }
    const float halt_cosine = wanted.halt_cosine > 0 ? wanted.halt_cosine
                              : engine->sidecar()    ? engine->sidecar()->halt_cosine
                                                     : 0.0f;
    if (method.max_steps() == 0) {
        throw Error(ErrorKind::usage, "-K auto: the method " + method.name() + " takes no latent steps",
                    "leave -K out, or give a sidecar");
    }
    if (halt_cosine <= 0) {
        throw Error(ErrorKind::usage, "-K auto: the sidecar does not say when a trajectory has settled",
                    "give -K a number, or let penelope eval --calibrate-halting find the threshold");
    }
    return { method.max_steps(), halt_cosine };
}

// One graph when K is fixed and no callback observes the steps, otherwise step by step.
LatentResult Session::Impl::prefill(const Method & method, const std::vector<Prompt> & prompts,
                                    const HaltingPolicy & how, const StepCallback & on_step, bool attention) {
    if (!on_step && how.cosine > 1.0f) {
        LatentResult latent;
        latent.prefilled = method.prefill(context, prompts, how.max_steps);
        latent.n_steps.assign(prompts.size(), how.max_steps);
        latent.layer_applications.assign(prompts.size(), latent.prefilled.layer_applications);
        return latent;
    }
    LatentSteps * steps = method.steps(context);
    if (!steps) {
        throw Error(ErrorKind::usage,
                    std::string(on_step ? "--watch" : "-K auto") + ": the method " + method.name() +
                        " cannot be followed step by step",
                    on_step ? "leave --watch out" : "give -K a number");
    }
    std::vector<StateTensor> before;
    LookCallback             look;
    if (on_step) {
        look = [&](int stream) {
            return on_step(trace_step(context, engine->tokenizer(), *steps, stream, before, attention));
        };
    }
    return run_latent_steps(*steps, prompts, how, look);
}

Answer Session::generate(const std::vector<int32_t> & prompt, const GenerateOptions & options,
                         const TokenCallback & on_token, const StepCallback & on_step,
                         const ReasoningCallback & on_reasoning) {
    const CancelRequest::Call call(impl_->cancel);
    const Method &            method = impl_->engine->method(options.method);
    const HaltingPolicy       plan   = impl_->plan(method, options);
    check_request(method, impl_->context, { prompt }, plan.max_steps);
    check_sampling(options.sampling);

    const int n_reusable = reusable_prefix(impl_->cached, prompt, impl_->options.bucket);
    Prompt    whole{ prompt, 0, impl_->context.cache().restore_checkpoint(0, n_reusable) };
    impl_->cached.clear(); // until the prefill has succeeded
    Answer              answer = impl_->initial_answer(method, plan.max_steps, prompt);
    Stopwatch           watch;
    LatentResult        latent;
    ClearCacheOnFailure rows(impl_->context);
    try {
        const int n_applied = prefill_stable_prefix(impl_->context, whole, options.n_stable_prefix);
        latent              = impl_->prefill(method, { whole }, plan, on_step, options.attention);
        latent.prefilled.layer_applications += n_applied;
    } catch (const Error & error) {
        if (error.kind != ErrorKind::cancelled) {
            throw;
        }
        answer.finish_reason = FinishReason::cancelled;
        return answer;
    }
    answer.n_steps     = latent.n_steps.front();
    const bool goes_on = method.n_extra_rows(answer.n_steps) == 0; // the answer follows the prompt
    impl_->context.cache().save_checkpoint(0, int(prompt.size()), goes_on ? StateSlot::current : StateSlot::prompt_end);
    answer.timings.prompt_ms = watch.elapsed_ms();
    answer = impl_->decode_answers(latent.prefilled, { std::move(answer) }, options, on_token, on_reasoning).front();
    impl_->cached = prompt;
    // A cancelled graph may have updated the recurrent state of some layers only.
    const bool is_inconsistent =
        answer.finish_reason == FinishReason::cancelled && impl_->context.cache().is_recurrent();
    if (goes_on && !is_inconsistent) {
        // The last token was sampled but never decoded.
        impl_->cached.insert(impl_->cached.end(), answer.tokens.begin(),
                             answer.tokens.end() - (answer.tokens.empty() ? 0 : 1));
        impl_->context.cache().save_checkpoint(0, int(impl_->cached.size()), StateSlot::current);
    }
    rows.done();
    return answer;
}

std::vector<Answer> Session::generate_batch(const std::vector<std::vector<int32_t>> & prompts,
                                            const GenerateOptions &                   options) {
    const CancelRequest::Call call(impl_->cancel);
    if (prompts.empty()) {
        return {};
    }
    const Method &      method = impl_->engine->method(options.method);
    const HaltingPolicy plan   = impl_->plan(method, options);
    check_request(method, impl_->context, prompts, plan.max_steps);
    check_sampling(options.sampling);
    impl_->cached.clear();

    ClearCacheOnFailure rows(impl_->context);
    const Stopwatch     watch;
    const LatentResult  latent = impl_->prefill(method, fresh_prompts(prompts), plan, {});
    std::vector<Answer> initial;
    for (size_t i = 0; i < prompts.size(); i++) {
        initial.push_back(impl_->initial_answer(method, latent.n_steps[i], prompts[i]));
    }
    split_prompt_ms(initial, watch.elapsed_ms());
    std::vector<Answer> answers = impl_->decode_answers(latent.prefilled, std::move(initial), options);
    for (size_t i = 0; i < answers.size(); i++) {
        answers[i].layer_applications = latent.layer_applications[i];
    }
    rows.done();
    return answers;
}

std::vector<std::vector<Answer>> Session::generate_sweep(const std::vector<std::vector<int32_t>> & prompts,
                                                         const std::vector<int> &                  steps,
                                                         const GenerateOptions &                   options) {
    const CancelRequest::Call call(impl_->cancel);
    if (prompts.empty() || steps.empty()) {
        return {};
    }
    const Method & method = impl_->engine->method(options.method);
    for (int n_steps : steps) {
        check_request(method, impl_->context, prompts, n_steps);
    }
    if (!std::is_sorted(steps.begin(), steps.end())) {
        throw Error(ErrorKind::usage, "-K: the steps of a sweep must ascend");
    }
    check_sampling(options.sampling);
    impl_->cached.clear();

    std::vector<std::vector<Answer>> all;
    Stopwatch                        watch;
    ClearCacheOnFailure              rows(impl_->context);
    method.sweep(impl_->context, prompts, steps, [&](int n_steps, const Prefill & prefilled) {
        std::vector<Answer> initial;
        for (size_t i = 0; i < prompts.size(); i++) {
            initial.push_back(impl_->initial_answer(method, n_steps, prompts[i]));
            initial.back().step_cosine = prefilled.step_cosine.empty() ? -1.0f : prefilled.step_cosine[i];
        }
        split_prompt_ms(initial, watch.elapsed_ms());
        all.push_back(impl_->decode_answers(prefilled, std::move(initial), options));
        watch.restart();
    });
    rows.done();
    return all;
}

std::vector<std::vector<float>> Session::logits(const std::vector<std::vector<int32_t>> & prompts,
                                                const GenerateOptions &                   options) {
    const CancelRequest::Call call(impl_->cancel);
    if (prompts.empty()) {
        return {};
    }
    const Method &      method = impl_->engine->method(options.method);
    const HaltingPolicy plan   = impl_->plan(method, options);
    check_request(method, impl_->context, prompts, plan.max_steps);
    impl_->cached.clear();
    ClearCacheOnFailure rows(impl_->context);
    LatentResult        latent = impl_->prefill(method, fresh_prompts(prompts), plan, {});
    rows.done();
    return std::move(latent.prefilled.logits);
}

std::vector<StateTensor> Session::dump(const std::vector<int32_t> & prompt, int n_steps) {
    const CancelRequest::Call call(impl_->cancel);
    const Method &            method = impl_->engine->method("");
    n_steps                          = n_steps < 0 ? method.default_steps() : n_steps;
    check_request(method, impl_->context, { prompt }, n_steps);
    impl_->cached.clear();
    ClearCacheOnFailure      rows(impl_->context);
    std::vector<StateTensor> states = method.states(impl_->context, { prompt, 0, 0 }, n_steps);
    rows.done();
    if (states.empty()) {
        throw Error(ErrorKind::usage, "--dump: the method " + method.name() + " has no intermediate states",
                    "give a sidecar");
    }
    return states;
}

std::vector<TraceStep> Session::trace(const std::vector<int32_t> & prompt, int n_steps, bool attention,
                                      const StepCallback & on_step) {
    const CancelRequest::Call call(impl_->cancel);
    const Method &            method = impl_->engine->method("");
    n_steps                          = n_steps < 0 ? method.default_steps() : n_steps;
    check_request(method, impl_->context, { prompt }, n_steps);
    LatentSteps * steps = method.steps(impl_->context);
    impl_->cached.clear();
    std::vector<StateTensor> before;
    std::vector<TraceStep>   trace;
    ClearCacheOnFailure      rows(impl_->context);
    const auto               take = [&] {
        trace.push_back(trace_step(impl_->context, impl_->engine->tokenizer(), *steps, 0, before, attention));
        return !on_step || on_step(trace.back());
    };
    if (steps) {
        steps->start({ { prompt, 0, 0 } });
    }
    if (!steps || steps->read_state(0).front().name != "M") {
        throw Error(ErrorKind::usage, "--trace: the method has no memory states", "give a Penelope sidecar");
    }
    bool goes_on = take();
    while (goes_on && steps->step(0) < n_steps) {
        steps->advance({ 0 });
        goes_on = take();
    }
    rows.done();
    return trace;
}

} // namespace penelope
