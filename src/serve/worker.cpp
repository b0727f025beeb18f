#include "serve/worker.h"

#include "arch/config.h"
#include "base/clock.h"
#include "method/decode.h"

#include <algorithm>

namespace penelope {

namespace {

SessionOptions session_options(const WorkerOptions & options) {
    SessionOptions session  = options.session;
    session.batch_invariant = !options.no_batch_invariance;
    return session;
}

RequestError too_late() {
    return RequestError(504, "timeout: the answer exceeded the time limit of the server (--timeout)", "", "timeout");
}

} // namespace

Worker::Worker(std::shared_ptr<const Engine> engine, const WorkerOptions & options, Metrics & metrics,
               std::atomic<int> & n_computing, StealWork steal_work)
    : engine_(std::move(engine)), session_(engine_, session_options(options)),
      context_(session_.context()), env_{ engine_->tokenizer(), engine_->config().n_vocab, session_.options().n_ctx,
                                          [this] { engine_->throw_not_finite(); } },
      no_batch_invariance_(options.no_batch_invariance),
      prefills_one_by_one_(!no_batch_invariance_ && engine_->depends_on_batch_position()), metrics_(metrics),
      n_computing_(n_computing), steal_work_(std::move(steal_work)),
      slots_(static_cast<size_t>(session_.options().n_streams)), cached_prompts_(slots_.size()) {
    thread_ = std::thread([this] { loop(); });
}

Worker::~Worker() {
    stop();
}

void Worker::check(const Job & job) const {
    check_request(engine_->method(job.generate.method), context_, { job.prompt }, job.generate.n_steps);
    check_sampling(job.generate.sampling);
    if (job.generate.grammar) {
        engine_->tokenizer().trie(); // built on the connection thread, so that running answers do not wait
    }
}

void Worker::submit(std::shared_ptr<Job> job, int index) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (closed_) {
            throw RequestError(503, "the server is shutting down", "", "shutting_down");
        }
        waiting_.push_back({ std::move(job), index });
        metrics_.waiting++;
    }
    wake_.notify_one();
}

int Worker::load() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return int(waiting_.size()) + n_busy_;
}

int Worker::cached_prefix(const Tokens & prompt) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    int                               most = 0;
    for (const Tokens & cached_prompt : cached_prompts_) {
        most = std::max(most, count_reusable(cached_prompt, prompt));
    }
    return most;
}

bool Worker::hand_over_waiting(Worker & other) {
    Task task;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (waiting_.empty()) {
            return false;
        }
        task = std::move(waiting_.front());
        waiting_.pop_front();
    }
    const std::lock_guard<std::mutex> lock(other.mutex_);
    other.waiting_.push_back(std::move(task));
    return true;
}

int Worker::count_reusable(const Tokens & cached_prompt, const Tokens & prompt) const {
    return no_batch_invariance_ ? reusable_prefix(cached_prompt, prompt, options().bucket)
                                : bitexact_prefix(cached_prompt, prompt, context_.options());
}

void Worker::close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
}

bool Worker::wait_idle(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return idle_.wait_for(lock, time, [this] { return waiting_.empty() && n_busy_ == 0; });
}

void Worker::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_); // else the thread could miss the notification
        closed_  = true;
        stopped_ = true;
    }
    session_.cancel(); // interrupts the running graph
    wake_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void Worker::steal_work() {
    while (load() < int(slots_.size()) && steal_work_(*this)) {
    }
}

// False on shutdown.
bool Worker::wait_for_work() {
    steal_work();
    std::unique_lock<std::mutex> lock(mutex_);
    if (n_busy_ == 0 && waiting_.empty()) {
        idle_.notify_all();
        n_computing_--;
        wake_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
        n_computing_++;
    }
    return !stopped_;
}

void Worker::loop() {
    n_computing_++;
    while (wait_for_work()) {
        context_.limit_threads(std::max(1, options().n_threads / n_computing_));
        drop_cancelled();
        try {
            admit();
            prefill_round();
            latent_round();
            decode_round();
        } catch (const std::exception & error) { // not caused by an answer: the device is lost
            fail_all(to_request_error(error));
        }
    }
    n_computing_--;
    const RequestError gone(503, "the server is shutting down", "", "shutting_down");
    fail_all(gone);
    const std::lock_guard<std::mutex> lock(mutex_);
    metrics_.waiting -= int64_t(waiting_.size());
    for (const Task & task : waiting_) {
        task.job->report(FailedEvent{ gone });
    }
    waiting_.clear();
    idle_.notify_all();
}

// Drops the answer when it was cancelled or timed out; true if dropped.
bool Worker::drop_if_cancelled(int stream) {
    const Job & job = *slot(stream).task.job;
    if (job.cancelled()) {
        metrics_.cancelled++;
        release(stream);
        return true;
    }
    if (job.expired()) {
        fail(stream, too_late());
        return true;
    }
    return false;
}

void Worker::drop_cancelled() {
    for (int i = 0; i < int(slots_.size()); i++) {
        if (slot(i).busy()) {
            drop_if_cancelled(i);
        }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.remove_if([&](const Task & task) {
        // Each condition is evaluated once: a job that expires between two checks would be dropped without an error to
        // its client.
        const bool cancelled = task.job->cancelled(), expired = task.job->expired();
        if (!cancelled && !expired) {
            return false;
        }
        metrics_.waiting--;
        metrics_.cancelled += cancelled;
        if (expired) {
            task.job->report(FailedEvent{ too_late() });
        }
        return true;
    });
}

// Assigns each waiting answer, in order, the free slot with the longest cached prefix; among equals the slot with the
// shortest cache.
void Worker::admit() {
    while (true) {
        std::vector<int> idle;
        for (int i = 0; i < int(slots_.size()); i++) {
            if (!slot(i).busy()) {
                idle.push_back(i);
            }
        }
        Task task;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (idle.empty() || waiting_.empty()) {
                break;
            }
            task = std::move(waiting_.front());
            waiting_.pop_front();
            metrics_.waiting--;
            n_busy_++;
        }
        const auto worth = [&](int stream) {
            const Tokens & cached = slot(stream).cached;
            return std::make_pair(count_reusable(cached, task.job->prompt), -int(cached.size()));
        };
        const int best = *std::max_element(idle.begin(), idle.end(), [&](int a, int b) { return worth(a) < worth(b); });
        Slot &    taken      = slot(best);
        const int n_reusable = worth(best).first;
        taken.task           = std::move(task);
        taken.prompt_ms = taken.latent_ms = 0;
        taken.thinking                    = false;
        metrics_.busy_slots++;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            cached_prompts_[size_t(best)].clear();
        }
        taken.n_cached = taken.n_prefilled = context_.cache().restore_checkpoint(best, n_reusable);
    }
}

bool Worker::attempt(const Streams & streams, double Slot::*time, const std::function<void()> & work) {
    const Stopwatch watch;
    try {
        work();
    } catch (const std::exception & error) {
        const RequestError problem = to_request_error(error);
        for (int stream : streams) {
            fail(stream, problem);
        }
        return false;
    }
    for (int stream : streams) {
        slot(stream).*time += watch.elapsed_ms();
    }
    return true;
}

void Worker::fail_all(const RequestError & error) {
    for (int i = 0; i < int(slots_.size()); i++) {
        if (slot(i).busy()) {
            fail(i, error);
        }
    }
}

void Worker::fail(int stream, const RequestError & error) {
    slot(stream).cached.clear();
    try {
        context_.cache().clear(stream); // may contain NaN, which attention reads even where masked
    } catch (const Error &) {           // the device is lost; later requests report it
    }
    const std::shared_ptr<Job> job = slot(stream).task.job;
    end(stream, FailedEvent{ error });
    job->cancel(); // cancels its other answers
}

// Frees the slot before sending the last event, so that a client that has its answer finds the slot free.
void Worker::end(int stream, JobEvent last) {
    const std::shared_ptr<Job> job = slot(stream).task.job;
    release(stream);
    job->report(std::move(last));
}

void Worker::release(int stream) {
    Slot & s = slot(stream);
    s.generation.reset();
    s.thinking = false;
    s.task     = {};
    metrics_.busy_slots--;
    const std::lock_guard<std::mutex> lock(mutex_);
    n_busy_--;
    cached_prompts_[size_t(stream)] = s.cached;
}

} // namespace penelope
