// Continuous batching on one thread that owns a Context. Each answer occupies a slot (one sequence of the KV cache).
// One round admits waiting answers, prefills a chunk of every unfinished prompt, runs one latent step for every
// question that still needs one, and decodes one token for every answer. So answers of different length, method and K
// can start and finish at any time.
#pragma once

#include "infer/generation_state.h"
#include "method/latent_steps.h"
#include "serve/job.h"
#include "serve/metrics.h"

#include <functional>
#include <list>
#include <thread>

namespace penelope {

struct WorkerOptions {
    SessionOptions session; // n_streams is the number of slots
    // false: an answer has the same bits whatever else is in the batch. true: faster kernels that depend on the batch,
    // and the KV cache of generated tokens is reused for follow-up prompts, although it was computed token by token.
    bool no_batch_invariance = false;
};

class Worker {
  public:
    // Moves a waiting answer of another worker to `idle`, which has a free slot; false: none waits.
    using StealWork = std::function<bool(Worker & idle)>;

    // n_computing: number of busy workers that share the CPU threads. steal_work is called on the worker's thread,
    // which the constructor starts.
    Worker(std::shared_ptr<const Engine> engine, const WorkerOptions & options, Metrics & metrics,
           std::atomic<int> & n_computing, StealWork steal_work);
    ~Worker(); // stop()

    const Engine &         engine() const { return *engine_; }
    const SessionOptions & options() const { return session_.options(); } // resolved

    // Throws Error(usage) when the prompt does not fit or K is out of range.
    void check(const Job & job) const;
    // Queues one answer of a checked job. Throws RequestError(503) when the worker is closing.
    void submit(std::shared_ptr<Job> job, int index);
    // load(): answers running or waiting. cached_prefix(): number of leading prompt tokens that a free slot has cached.
    int load() const;
    int cached_prefix(const Tokens & prompt) const;
    // Moves the longest waiting answer to `other`, on whose thread this is called; false: none waits.
    bool hand_over_waiting(Worker & other);

    void close();                                   // rejects new jobs
    bool wait_idle(std::chrono::milliseconds time); // true: nothing runs or waits
    void stop();                                    // fails the remaining jobs, ends the thread

  private:
    struct Task {
        std::shared_ptr<Job> job;
        int                  index = 0;
    };
    struct Slot {
        Tokens                   cached; // tokens in the KV cache of this slot
        Task                     task;
        int                      n_cached    = 0; // prompt tokens that were cached when the task started
        int                      n_prefilled = 0; // prompt tokens processed so far
        bool                     thinking    = false;
        double                   prompt_ms   = 0; // time to first token
        double                   latent_ms   = 0; // part of it spent in latent steps
        std::vector<StateTensor> previous_states; // states of the previous step, for the trace

        std::unique_ptr<GenerationState>      generation; // null until the first token
        std::chrono::steady_clock::time_point decode_start;

        bool busy() const { return task.job != nullptr; }
    };
    using Streams = std::vector<int>;

    void loop();
    void steal_work();
    bool wait_for_work();
    bool drop_if_cancelled(int stream);
    void drop_cancelled();
    void admit();
    void prefill_round();
    int  next_chunk_end(int stream);
    void prefill_batch(const Streams & streams);
    void prefill_part(int stream, int end);
    void start(const Streams & streams);
    void latent_round();
    void report_trace(int stream, LatentSteps & steps);
    void prefill_plain(const Streams & streams);
    void begin_answers(const Streams & streams, const Prefill & prefilled);
    void decode_round();
    void accept_logits(int stream, const std::vector<float> & logits);
    void finish(int stream);
    void fail(int stream, const RequestError & error);
    void fail_all(const RequestError & error);
    void end(int stream, JobEvent last);
    void release(int stream);

    // Runs work for these streams and adds its time to each. On an exception all of them fail and the result is false.
    bool attempt(const Streams & streams, double Slot::*time, const std::function<void()> & work);

    int            count_reusable(const Tokens & cached_prompt, const Tokens & prompt) const;
    Slot &         slot(int stream) { return slots_[size_t(stream)]; }
    const Method & method_of(int stream) { return engine_->method(slot(stream).task.job->generate.method); }
    Prompt         prompt_of(int stream) { return { slot(stream).task.job->prompt, stream, slot(stream).n_prefilled }; }
    std::vector<Prompt> prompts_of(const Streams & streams);

    std::shared_ptr<const Engine> engine_;
    Session                       session_; // owns the context
    Context &                     context_;
    GenerationEnv                 env_;
    bool                          no_batch_invariance_;
    bool                          prefills_one_by_one_; // batching prompts would change their rounding
    Metrics &                     metrics_;
    std::atomic<int> &            n_computing_;
    StealWork                     steal_work_;
    std::vector<Slot>             slots_;

    mutable std::mutex      mutex_; // guards the members below
    std::condition_variable wake_, idle_;
    std::list<Task>         waiting_;
    std::vector<Tokens>     cached_prompts_; // per slot, empty while it is busy
    int                     n_busy_ = 0;     // busy slots
    bool                    closed_ = false, stopped_ = false;
    std::thread             thread_;
};

} // namespace penelope
