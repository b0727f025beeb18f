// A generation job: the prompt, its options, and a queue of events from the worker to the connection thread.
// Independent of JSON and HTTP.
#pragma once

#include "infer/session.h"
#include "serve/errors.h"
#include "tools/call_body.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

namespace penelope {

// Events of a job. `index` is the number of the answer (n > 1 gives several).
struct LatentEvent {
    TraceStep step;
};
struct TextEvent {
    int                       index;
    std::string               text; // complete UTF-8 characters, may be empty
    std::vector<TokenLogprob> logprobs;
    std::string               reasoning; // new text of the <think> part
    std::vector<ToolEvent>    events{};  // with tools: text and calls in order
};
struct DoneEvent {
    int    index;
    Answer answer;
    int    n_cached;  // prompt tokens taken from the KV cache
    double latent_ms; // part of the time to first token spent in latent steps
};
struct FailedEvent {
    RequestError error;
};
using JobEvent = std::variant<LatentEvent, TextEvent, DoneEvent, FailedEvent>;

class Job {
  public:
    // Set before the job is submitted, const afterwards.
    std::vector<int32_t>                  prompt;
    GenerateOptions                       generate; // method and n_steps resolved
    int                                   n_answers = 1;
    bool                                  traces    = false; // report every latent step
    bool                                  answers   = true;  // generate an answer
    std::chrono::steady_clock::time_point deadline  = std::chrono::steady_clock::time_point::max();

    // For the connection thread. wait() returns nothing on timeout.
    std::optional<JobEvent> wait(std::chrono::milliseconds time);
    void                    cancel() { cancelled_.store(true); }

    // For the worker. Each answer ends with one DoneEvent; a FailedEvent ends the job.
    void report(JobEvent event);
    bool cancelled() const { return cancelled_.load(); }
    bool expired() const { return std::chrono::steady_clock::now() > deadline; }

  private:
    std::atomic<bool>       cancelled_{ false };
    std::mutex              mutex_;
    std::condition_variable wake_;
    std::deque<JobEvent>    events_;
};

} // namespace penelope
