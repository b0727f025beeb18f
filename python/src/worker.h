// The thread a session computes on. The caller's thread only waits, so that Ctrl-C and other Python threads get their
// turn at any moment. One thread per session, because OpenMP keeps its team per thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace penelope::python {

class Worker {
  public:
    Worker() = default;
    ~Worker();
    Worker(const Worker &)             = delete;
    Worker & operator=(const Worker &) = delete;

    // Starts the task. Throws Error(usage) in a process forked after the first task: threads do not survive a fork.
    void start(std::function<void()> task);
    // Whether the task has ended within this time. Without the GIL.
    bool wait(std::chrono::milliseconds time);
    // Throws what the task threw. After it has ended.
    void finish();

    // Runs the task and waits for it; called with the GIL, which others have meanwhile. Python's signal handlers run
    // every 50 ms. If one raises, or `meanwhile` does, cancel is called, and the exception goes on when the task has
    // ended.
    void run(
        std::function<void()> task, const std::function<void()> & cancel,
        const std::function<void()> & meanwhile = [] {});

  private:
    void loop();

    std::mutex              mutex_;
    std::condition_variable changed_;
    std::function<void()>   task_; // empty: none waits or runs
    std::exception_ptr      error_;
    bool                    closing_ = false;
    int                     process_ = 0; // that has the thread
    std::thread             thread_;
};

// How long Python's signal handlers wait at most.
constexpr std::chrono::milliseconds kSignalInterval{ 50 };

} // namespace penelope::python
