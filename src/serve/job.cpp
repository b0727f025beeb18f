#include "serve/job.h"

namespace penelope {

std::optional<JobEvent> Job::wait(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!wake_.wait_for(lock, time, [this] { return !events_.empty(); })) {
        return std::nullopt;
    }
    JobEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
}

void Job::report(JobEvent event) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        events_.push_back(std::move(event));
    }
    wake_.notify_one();
}

} // namespace penelope
