// The workers of a server. If splitting one matrix product over threads pays off, there is one worker with all threads.
// For small models it does not (graph/threads.h): then there is one single-threaded worker per thread, each with a
// share of the slots.
#pragma once

#include "serve/worker.h"

namespace penelope {

struct PoolOptions {
    WorkerOptions worker;       // slots and threads in total
    int           n_queue = 64; // maximum number of waiting answers
};

class WorkerPool {
  public:
    WorkerPool(std::shared_ptr<const Engine> engine, const PoolOptions & options, Metrics & metrics);
    ~WorkerPool(); // stop()

    const Engine &         engine() const { return workers_[0]->engine(); }
    const SessionOptions & options() const { return options_; } // resolved, totals of all workers
    int                    n_queue() const { return n_queue_; }

    // Throws Error(usage) when the prompt does not fit or K is out of range.
    void check(const Job & job) const { workers_[0]->check(job); }
    // Submits a checked job. Throws RequestError(503) when the queue is full or the pool is closing.
    void submit(const std::shared_ptr<Job> & job);

    void close();                                   // rejects new jobs
    bool wait_idle(std::chrono::milliseconds time); // true: nothing runs or waits
    void stop();                                    // fails the remaining jobs, ends the threads

  private:
    Worker & pick_worker(const Job & job);
    bool     steal_work(Worker & idle);
    int      load() const;

    int                                  n_queue_;
    std::atomic<int>                     n_computing_{ 0 };
    std::vector<std::unique_ptr<Worker>> workers_;
    SessionOptions                       options_;
    // Guards the choice of a worker: two jobs must not take the same slot, and a job that moves must be counted once.
    mutable std::mutex mutex_;
};

} // namespace penelope
