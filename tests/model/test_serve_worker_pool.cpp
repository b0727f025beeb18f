// The workers of the service on a small model: two of them with a slot each. Who gets work, how much may wait, and how
// answers end that nobody waits for, that take too long, or that the end of the server finds running.
#include <doctest/doctest.h>

#include "serve/worker_pool.h"
#include "support/golden.h"

#include <filesystem>

using namespace penelope;
using penelope::test::GoldenCase;

namespace {

constexpr std::chrono::milliseconds kLong{ 60000 };
constexpr int                       kContext = 30000;

// The golden case with a context that takes long to fill.
std::shared_ptr<const Engine> engine() {
    static const GoldenCase                    golden("last");
    static const std::shared_ptr<const Engine> loaded = [] {
        const std::string dir = golden.file("long"), file = golden.file("long.gguf");
        std::filesystem::copy(golden.source("model"), dir);
        Json config                       = read_json_file(dir + "/config.json");
        config["max_position_embeddings"] = kContext;
        std::ofstream(dir + "/config.json") << config.dump();
        ConvertOptions convert;
        convert.dir      = dir;
        convert.out_path = file;
        convert_directory(convert);
        LoadOptions load;
        load.base   = file;
        load.device = "CPU";
        return Engine::load(load);
    }();
    return loaded;
}

struct Pool {
    explicit Pool(int n_queue = 4) : pool(engine(), options(n_queue), metrics) {}

    static PoolOptions options(int n_queue) {
        PoolOptions options;
        options.worker.session.n_streams = 2;
        options.worker.session.n_threads = 2;
        options.worker.session.n_ctx     = kContext;
        options.n_queue                  = n_queue;
        return options;
    }

    std::shared_ptr<Job> submit(int n_predict, int n_answers = 1) {
        const auto job           = std::make_shared<Job>();
        job->prompt              = { 10, 11, 12, 13, 14 };
        job->n_answers           = n_answers;
        job->generate.method     = "plain";
        job->generate.n_steps    = 0;
        job->generate.n_predict  = n_predict;
        job->generate.ignore_end = true;
        pool.check(*job);
        pool.submit(job);
        return job;
    }
    std::shared_ptr<Job> submit_endless() { return submit(-1); }

    Metrics    metrics;
    WorkerPool pool;
};

// The next event that is no text.
JobEvent end_of(Job & job) {
    while (true) {
        auto event = job.wait(kLong);
        REQUIRE(event.has_value());
        if (!std::holds_alternative<TextEvent>(*event)) {
            return *std::move(event);
        }
    }
}

DoneEvent done_of(Job & job) {
    const JobEvent event = end_of(job);
    REQUIRE(std::holds_alternative<DoneEvent>(event));
    return std::get<DoneEvent>(event);
}

RequestError error_of(Job & job) {
    const JobEvent event = end_of(job);
    REQUIRE(std::holds_alternative<FailedEvent>(event));
    return std::get<FailedEvent>(event).error;
}

// It runs: its first token is there.
void wait_started(Job & job) {
    const auto event = job.wait(kLong);
    REQUIRE(event.has_value());
    REQUIRE(std::holds_alternative<TextEvent>(*event));
}

template <typename Call> std::string code_of(const Call & call) {
    try {
        call();
    } catch (const RequestError & error) {
        return error.code;
    }
    return "";
}

} // namespace

TEST_CASE("answers of one job: one end each, the same tokens on all workers") {
    Pool                  pool;
    const auto            job = pool.submit(20, 5);
    std::map<int, Tokens> found;
    for (int i = 0; i < 5; i++) {
        const DoneEvent done = done_of(*job);
        CHECK(done.answer.tokens.size() == 20);
        CHECK(found.emplace(done.index, done.answer.tokens).second);
    }
    CHECK(found.size() == 5);
    CHECK(found.begin()->first == 0);
    CHECK(found.rbegin()->first == 4);
    for (const auto & [index, tokens] : found) {
        CHECK(tokens == found.at(0));
    }
    CHECK(pool.pool.wait_idle(kLong));
    CHECK(pool.metrics.answers == 5);
    CHECK(pool.metrics.waiting == 0);
    CHECK(pool.metrics.busy_slots == 0);
}

TEST_CASE("the queue accepts all answers of a job or none") {
    Pool       pool(2);
    const auto first = pool.submit_endless(), second = pool.submit_endless();
    wait_started(*first);
    wait_started(*second);
    CHECK(code_of([&] { pool.submit(4, 3); }) == "queue_full");
    CHECK(pool.metrics.waiting == 0);
    const auto third = pool.submit(4, 2);
    CHECK(pool.metrics.waiting == 2);
    CHECK(code_of([&] { pool.submit(4, 1); }) == "queue_full");
    first->cancel();
    CHECK(done_of(*third).answer.tokens.size() == 4);
    CHECK(done_of(*third).answer.tokens.size() == 4);
}

TEST_CASE("a queued answer is taken by the first free worker") {
    for (const bool first_is_left : { true, false }) {
        Pool       pool;
        const auto a = pool.submit_endless(), b = pool.submit_endless();
        wait_started(*a);
        wait_started(*b);
        CHECK(pool.metrics.busy_slots == 2); // each took a worker
        std::vector<std::shared_ptr<Job>> waiting;
        for (int i = 0; i < 4; i++) {
            waiting.push_back(pool.submit(3));
        }
        (first_is_left ? a : b)->cancel();
        for (const auto & job : waiting) {
            CHECK(done_of(*job).answer.tokens.size() == 3);
        }
        CHECK(pool.metrics.busy_slots == 1); // the other one still runs
        CHECK(pool.metrics.cancelled == 1);
    }
}

TEST_CASE("a cancelled answer frees its slot and reports no end") {
    Pool       pool;
    const auto running = pool.submit_endless();
    wait_started(*running);
    running->cancel();
    CHECK(pool.pool.wait_idle(kLong));
    CHECK(pool.metrics.cancelled == 1);
    CHECK(pool.metrics.answers == 0);
    for (auto event = running->wait(std::chrono::milliseconds(0)); event;
         event      = running->wait(std::chrono::milliseconds(0))) {
        CHECK(std::holds_alternative<TextEvent>(*event));
    }
    CHECK(done_of(*pool.submit(2)).answer.tokens.size() == 2);
}

TEST_CASE("answers past their deadline fail, running or waiting") {
    Pool       pool;
    const auto running = pool.submit_endless(), other = pool.submit_endless();
    wait_started(*running);
    wait_started(*other);
    const auto late = std::make_shared<Job>();
    late->prompt    = { 10, 11 };
    late->generate  = running->generate;
    late->deadline  = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    pool.pool.submit(late); // has to wait for a slot
    CHECK(error_of(*late).status == 504);
    CHECK(pool.metrics.waiting == 0);
    other->cancel();
    running->cancel();
    CHECK(pool.pool.wait_idle(kLong));
    const auto short_time = std::make_shared<Job>();
    short_time->prompt    = { 10, 11 };
    short_time->generate  = running->generate;
    short_time->deadline  = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    pool.pool.submit(short_time);
    CHECK(error_of(*short_time).status == 504);
    CHECK(pool.pool.wait_idle(kLong));
}

TEST_CASE("a closed pool takes nothing new and finishes what it has") {
    Pool       pool;
    const auto running = pool.submit(300, 3);
    pool.pool.close();
    CHECK(code_of([&] { pool.submit(1); }) == "shutting_down");
    for (int i = 0; i < 3; i++) {
        CHECK(done_of(*running).answer.tokens.size() == 300);
    }
    CHECK(pool.pool.wait_idle(kLong));
}

TEST_CASE("stopping fails what runs and what waits") {
    Pool                              pool;
    std::vector<std::shared_ptr<Job>> jobs;
    for (int i = 0; i < 4; i++) {
        jobs.push_back(pool.submit_endless());
    }
    CHECK(!pool.pool.wait_idle(std::chrono::milliseconds(1)));
    pool.pool.stop();
    for (const auto & job : jobs) {
        const RequestError error = error_of(*job);
        CHECK(error.status == 503);
        CHECK(error.code == "shutting_down");
    }
    CHECK(pool.metrics.waiting == 0);
    CHECK(pool.metrics.busy_slots == 0);
    CHECK(pool.pool.wait_idle(kLong));
}

TEST_CASE("an invalid job fails before it is queued") {
    Pool pool;
    Job  job;
    job.prompt          = Tokens(size_t(kContext) + 1, 10);
    job.generate.method = "plain";
    CHECK_THROWS_AS(pool.pool.check(job), Error);
    job.prompt = {};
    CHECK_THROWS_AS(pool.pool.check(job), Error);
}
