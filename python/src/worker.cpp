#include "worker.h"

#include "base/error.h"

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace nb = nanobind;

namespace penelope::python {

Worker::~Worker() {
    if (!thread_.joinable()) {
        return;
    }
    if (process_ != getpid()) {
        thread_.detach(); // it is a thread of another process
        return;
    }
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Worker::start(std::function<void()> task) {
    if (thread_.joinable() && process_ != getpid()) {
        throw Error(ErrorKind::usage, "session: it was used before this process was forked, and its thread is gone",
                    "load the model in the new process, or start it with multiprocessing's method spawn");
    }
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        task_  = std::move(task);
        error_ = nullptr;
    }
    if (!thread_.joinable()) {
        process_ = getpid();
        thread_  = std::thread([this] { loop(); });
    }
    changed_.notify_all();
}

bool Worker::wait(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return !task_; });
}

void Worker::finish() {
    if (error_) {
        std::rethrow_exception(std::exchange(error_, nullptr));
    }
}

void Worker::run(std::function<void()> task, const std::function<void()> & cancel,
                 const std::function<void()> & meanwhile) {
    start(std::move(task));
    std::exception_ptr raised;
    for (bool done = false; !done;) {
        {
            const nb::gil_scoped_release release;
            done = wait(kSignalInterval);
        }
        try {
            if (!raised) {
                if (PyErr_CheckSignals() != 0) {
                    throw nb::python_error();
                }
                meanwhile();
            }
        } catch (...) {
            raised = std::current_exception();
            if (!done) {
                cancel();
            }
        }
    }
    if (raised) {
        std::rethrow_exception(raised);
    }
    finish();
}

void Worker::loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return task_ || closing_; });
        if (closing_) {
            return;
        }
        const std::function<void()> task = task_;
        lock.unlock();
        std::exception_ptr error;
        try {
            task();
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        task_  = nullptr;
        error_ = error;
        changed_.notify_all();
    }
}

} // namespace penelope::python
