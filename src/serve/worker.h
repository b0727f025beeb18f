// A thread that owns a context and computes. Answers take slots (streams of the cache). Each round admits waiting ones,
// reads a piece of every prompt that came, takes one latent step for every question that is being thought about, and
// writes one token for every answer. So answers of different lengths, methods and K join and leave as they come.
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
    SessionOptions session; // n_streams: slots
    // Without it an answer has the same bits whatever else runs. With it the rows of written answers, which were
    // rounded as single rows are, are kept for prompts that go on from them, and rows are multiplied in whatever
    // company they come.
    bool no_batch_invariance = false;
};

class Worker {
  public:
    // Gives a worker with a free slot an answer that waits for another worker; false: none waits.
    using StealWork = std::function<bool(Worker & idle)>;

    // n_computing: how many workers that share the threads are at work. steal_work is called by the worker's thread,
    // which begins here.
    Worker(std::shared_ptr<const Engine> engine, const WorkerOptions & options, Metrics & metrics,
           std::atomic<int> & n_computing, StealWork steal_work);
    ~Worker(); // stop()

    const Engine &         engine() const { return *engine_; }
    const SessionOptions & options() const { return session_.options(); } // resolved

    // Throws Error(usage) when the prompt does not fit or K is out of range.
    void check(const Job & job) const;
    // One of the answers of a job. Throws RequestError(503) when the worker is closing. The job was checked.
    void submit(std::shared_ptr<Job> job, int index);
    // Answers that run or wait for a slot, and tokens of a prompt's beginning that a free slot holds.
    int load() const;
    int cached_prefix(const Tokens & prompt) const;
    // Moves the answer that waits longest to the worker whose thread calls this; false: none waits.
    bool hand_over_waiting(Worker & other);

    void close();                                   // takes no more jobs
    bool wait_idle(std::chrono::milliseconds time); // true: nothing runs or waits
    void stop();                                    // fails what is left, ends the thread

  private:
    struct Task {
        std::shared_ptr<Job> job;
        int                  index = 0;
    };
    struct Slot {
        Tokens                   cached; // tokens whose rows stand in the stream, from its start
        Task                     task;
        int                      n_cached    = 0; // of the prompt, when the task came
        int                      n_prefilled = 0; // rows of the prompt that stand by now
        bool                     thinking    = false;
        double                   prompt_ms   = 0; // before the first token ...
        double                   latent_ms   = 0; // ... of which thinking took
        std::vector<StateTensor> previous_states; // the states of the step before, for the trace

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

    // Does work for these streams; an error of it fails them all. The time goes to each. False after an error.
    bool attempt(const Streams & streams, double Slot::*time, const std::function<void()> & work);

    int            count_reusable(const Tokens & cached_prompt, const Tokens & prompt) const;
    Slot &         slot(int stream) { return slots_[size_t(stream)]; }
    const Method & method_of(int stream) { return engine_->method(slot(stream).task.job->generate.method); }
    Prompt         prompt_of(int stream) { return { slot(stream).task.job->prompt, stream, slot(stream).n_prefilled }; }
    std::vector<Prompt> prompts_of(const Streams & streams);

    std::shared_ptr<const Engine> engine_;
    Session                       session_; // for its context
    Context &                     context_;
    GenerationEnv                 env_;
    bool                          no_batch_invariance_;
    bool                          prefills_one_by_one_; // prompts would round each other differently
    Metrics &                     metrics_;
    std::atomic<int> &            n_computing_;
    StealWork                     steal_work_;
    std::vector<Slot>             slots_;

    mutable std::mutex      mutex_; // of what follows
    std::condition_variable wake_, idle_;
    std::list<Task>         waiting_;
    std::vector<Tokens>     cached_prompts_; // of each slot, empty while it is busy
    int                     n_busy_ = 0;     // slots
    bool                    closed_ = false, stopped_ = false;
    std::thread             thread_;
};

} // namespace penelope
