// The workers of a server. A model whose products are worth sharing has one, which takes all threads. Where they are
// not (graph/threads.h), answers are shared out instead: a worker for each thread, with its part of the slots.
#pragma once

#include "serve/worker.h"

namespace penelope {

struct PoolOptions {
    WorkerOptions worker;       // slots and threads of all workers together
    int           n_queue = 64; // answers that may wait for a slot
};

class WorkerPool {
  public:
    WorkerPool(std::shared_ptr<const Engine> engine, const PoolOptions & options, Metrics & metrics);
    ~WorkerPool(); // stop()

    const Engine &         engine() const { return workers_[0]->engine(); }
    const SessionOptions & options() const { return options_; } // resolved, of all workers
    int                    n_queue() const { return n_queue_; }

    // Throws Error(usage) when the prompt does not fit or K is out of range.
    void check(const Job & job) const { workers_[0]->check(job); }
    // Throws RequestError(503) when the queue is full or the pool is closing. The job was checked.
    void submit(const std::shared_ptr<Job> & job);

    void close();                                   // takes no more jobs
    bool wait_idle(std::chrono::milliseconds time); // true: nothing runs or waits
    void stop();                                    // fails what is left, ends the threads

  private:
    Worker & pick_worker(const Job & job);
    bool     steal_work(Worker & idle);
    int      load() const;

    int                                  n_queue_;
    std::atomic<int>                     n_computing_{ 0 };
    std::vector<std::unique_ptr<Worker>> workers_;
    SessionOptions                       options_;
    // Of the choice: two jobs must not take the same room, and none be counted while it moves.
    mutable std::mutex mutex_;
};

} // namespace penelope
