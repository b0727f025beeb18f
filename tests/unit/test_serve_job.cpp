// A job: what the worker reports reaches the thread that waits, in order and without delay; cancelling and deadlines.
#include "base/clock.h"
#include "serve/job.h"

#include <doctest/doctest.h>

#include <thread>

using namespace penelope;

namespace {

constexpr std::chrono::milliseconds kNow{ 0 };
constexpr std::chrono::milliseconds kLong{ 60000 };

TextEvent text(int index, const std::string & words) {
    return { index, words, {}, "" };
}

std::string words_of(const std::optional<JobEvent> & event) {
    REQUIRE(event.has_value());
    REQUIRE(std::holds_alternative<TextEvent>(*event));
    return std::get<TextEvent>(*event).text;
}

} // namespace

TEST_CASE("events come in the order in which they were reported, each once") {
    Job job;
    CHECK(!job.wait(kNow));
    job.report(text(0, "one"));
    job.report(text(0, "two"));
    job.report(FailedEvent{ RequestError(504, "late", "", "timeout") });
    CHECK(words_of(job.wait(kNow)) == "one");
    CHECK(words_of(job.wait(kNow)) == "two");
    const auto last = job.wait(kNow);
    REQUIRE(last.has_value());
    REQUIRE(std::holds_alternative<FailedEvent>(*last));
    CHECK(std::get<FailedEvent>(*last).error.status == 504);
    CHECK(std::get<FailedEvent>(*last).error.code == "timeout");
    CHECK(!job.wait(kNow));
}

TEST_CASE("wait times out if nothing is reported") {
    Job             job;
    const Stopwatch watch;
    CHECK(!job.wait(std::chrono::milliseconds(30)));
    CHECK(watch.elapsed_ms() >= 30);
}

TEST_CASE("a report wakes the waiting thread") {
    Job                     job;
    std::optional<JobEvent> found;
    const Stopwatch         watch;
    std::thread             waiting([&] { found = job.wait(kLong); });
    job.report(text(1, "here"));
    waiting.join();
    CHECK(words_of(found) == "here");
    CHECK(watch.elapsed_ms() < 30000); // not when the wait is over
}

TEST_CASE("reports of several workers are all kept, those of each in order") {
    constexpr int            n_workers = 4, n_events = 2000;
    Job                      job;
    std::vector<std::thread> workers;
    for (int w = 0; w < n_workers; w++) {
        workers.emplace_back([&job, w] {
            for (int i = 0; i < n_events; i++) {
                job.report(text(w, std::to_string(i)));
            }
        });
    }
    std::vector<int> next(n_workers, 0);
    for (int i = 0; i < n_workers * n_events; i++) {
        const auto event = job.wait(kLong);
        REQUIRE(event.has_value());
        const auto & one = std::get<TextEvent>(*event);
        REQUIRE(one.text == std::to_string(next[size_t(one.index)]++));
    }
    for (std::thread & worker : workers) {
        worker.join();
    }
    CHECK(next == std::vector<int>(n_workers, n_events));
    CHECK(!job.wait(kNow));
}

TEST_CASE("cancelling is seen by the worker and loses no event") {
    Job job;
    CHECK(!job.cancelled());
    job.report(text(0, "before"));
    job.cancel();
    CHECK(job.cancelled());
    CHECK(words_of(job.wait(kNow)) == "before");
    job.cancel();
    CHECK(job.cancelled());
}

TEST_CASE("a deadline") {
    Job job;
    CHECK(!job.expired()); // none unless one is set
    job.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
    CHECK(!job.expired());
    job.deadline = std::chrono::steady_clock::now() - std::chrono::milliseconds(1);
    CHECK(job.expired());
}
