// A request as the worker sees it: a prompt, how to answer it, and a channel through which what comes of it goes back
// to the thread that holds the connection. Nothing here knows JSON or HTTP.
#pragma once

#include "infer/session.h"
#include "serve/errors.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

namespace penelope {

// What a job reports. `index` counts the answers of one job.
struct LatentEvent {
    TraceStep step;
};
struct TextEvent {
    int                       index;
    std::string               text; // whole in UTF-8, may be empty
    std::vector<TokenLogprob> logprobs;
    std::string               reasoning; // what the visible chain of thought gained instead
};
struct DoneEvent {
    int    index;
    Answer answer;
    int    n_cached;  // prompt tokens that were not computed again
    double latent_ms; // of the time before the first token, what latent steps took
};
struct FailedEvent {
    RequestError error;
};
using JobEvent = std::variant<LatentEvent, TextEvent, DoneEvent, FailedEvent>;

class Job {
  public:
    // Filled in before the job is submitted, const from then on.
    std::vector<int32_t>                  prompt;
    GenerateOptions                       generate; // method and n_steps resolved
    int                                   n_answers = 1;
    bool                                  traces    = false; // report every latent step ...
    bool                                  answers   = true;  // ... and answer
    std::chrono::steady_clock::time_point deadline  = std::chrono::steady_clock::time_point::max();

    // For the thread of the connection. wait(): nothing when none came in time.
    std::optional<JobEvent> wait(std::chrono::milliseconds time);
    void                    cancel() { cancelled_.store(true); }

    // For the worker. Each answer ends with one DoneEvent; a FailedEvent ends the whole job.
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
