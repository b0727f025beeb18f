#include "serve/worker_pool.h"

#include "arch/config.h"
#include "graph/threads.h"

#include <algorithm>
#include <tuple>

namespace penelope {

namespace {

int worker_count(const Engine & engine, const SessionOptions & session) {
    const int64_t width = engine.config().n_embd;
    const bool    is_small =
        !engine.split().is_split() && engine.split().is_all_cpu() && 2 * width * width < kMinParallelOps;
    const int n = session.n_threads > 0 ? session.n_threads : default_thread_count();
    return is_small ? std::min(n, session.n_streams) : 1;
}

} // namespace

WorkerPool::WorkerPool(std::shared_ptr<const Engine> engine, const PoolOptions & options, Metrics & metrics)
    : n_queue_(options.n_queue) {
    const SessionOptions & all = options.worker.session;
    const int              n   = worker_count(*engine, all);
    try {
        const std::lock_guard<std::mutex> lock(mutex_); // workers steal as soon as they exist
        for (int i = 0; i < n; i++) {
            WorkerOptions part     = options.worker;
            part.session.n_streams = all.n_streams / n + (i < all.n_streams % n);
            workers_.push_back(std::make_unique<Worker>(engine, part, metrics, n_computing_,
                                                        [this](Worker & idle) { return steal_work(idle); }));
        }
    } catch (...) {
        stop();
        throw;
    }
    options_           = workers_[0]->options();
    options_.n_streams = all.n_streams;
}

WorkerPool::~WorkerPool() {
    stop();
}

int WorkerPool::load() const {
    int n = 0;
    for (const auto & worker : workers_) {
        n += worker->load();
    }
    return n;
}

// Steals from the worker with the highest load. Answers queue at a worker only when all are busy; the first that is
// free takes one.
bool WorkerPool::steal_work(Worker & idle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto busiest = std::max_element(workers_.begin(), workers_.end(), [](const auto & a, const auto & b) {
        return a->load() - a->options().n_streams < b->load() - b->options().n_streams;
    });
    return busiest->get() != &idle && (*busiest)->load() > (*busiest)->options().n_streams &&
           (*busiest)->hand_over_waiting(idle);
}

// Prefers a worker with a free slot and the longest cached prefix, else the lowest load.
Worker & WorkerPool::pick_worker(const Job & job) {
    const int  n_prompt = int(job.prompt.size());
    const auto worth    = [&](const Worker & worker) {
        const int  load            = worker.load();
        const bool free            = load < worker.options().n_streams;
        const int  n_cached_prefix = free ? worker.cached_prefix(job.prompt) : 0;
        return std::make_tuple(free, 2 * n_cached_prefix >= n_prompt ? n_cached_prefix : 0, -load);
    };
    return **std::max_element(workers_.begin(), workers_.end(),
                              [&](const auto & a, const auto & b) { return worth(*a) < worth(*b); });
}

void WorkerPool::submit(const std::shared_ptr<Job> & job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int                         n_there = load();
    if (n_there + job->n_answers > options_.n_streams + n_queue_) {
        throw RequestError(503,
                           "the queue is full: " + std::to_string(std::max(0, n_there - options_.n_streams)) + " of " +
                               std::to_string(n_queue_) + " answers are waiting (--queue)",
                           "", "queue_full");
    }
    for (int i = 0; i < job->n_answers; i++) {
        pick_worker(*job).submit(job, i);
    }
}

void WorkerPool::close() {
    const std::lock_guard<std::mutex> lock(mutex_); // a job is accepted whole or not at all
    for (const auto & worker : workers_) {
        worker->close();
    }
}

bool WorkerPool::wait_idle(std::chrono::milliseconds time) {
    if (!std::all_of(workers_.begin(), workers_.end(), [&](const auto & worker) { return worker->wait_idle(time); })) {
        return false;
    }
    const std::lock_guard<std::mutex> lock(mutex_); // a worker may have stolen from one checked before
    return load() == 0;
}

void WorkerPool::stop() {
    for (const auto & worker : workers_) {
        worker->stop();
    }
}

} // namespace penelope
