// Requests to cancel a session: each ends one call, also when it comes between two of them.
#include <doctest/doctest.h>

#include "base/error.h"
#include "infer/session.h"
#include "support/errors.h"
#include "support/golden.h"

using namespace penelope;
using penelope::test::error_of;
using penelope::test::GoldenCase;

namespace {

std::shared_ptr<const Engine> load(const GoldenCase & golden) {
    LoadOptions options;
    options.base    = golden.backbone();
    options.sidecar = golden.sidecar();
    options.device  = "CPU";
    return Engine::load(options);
}

SessionOptions two_streams() {
    SessionOptions options;
    options.n_threads = 1;
    options.n_streams = 2;
    options.n_ctx     = 160;
    return options;
}

} // namespace

TEST_CASE("a request between two calls ends the next one, whatever it is") {
    const GoldenCase                        golden("last");
    Session                                 session(load(golden), two_streams());
    const std::vector<std::vector<int32_t>> prompts{ golden.prompt_ids(0), golden.prompt_ids(1) };
    GenerateOptions                         options;
    options.n_steps     = 2;
    options.n_predict   = 4;
    const auto is_ended = [&](const std::function<void()> & call) {
        call();
        session.cancel();
        CHECK(error_of(call).kind == ErrorKind::cancelled);
        call(); // once only
    };
    is_ended([&] { session.generate_batch(prompts, options); });
    is_ended([&] { session.generate_sweep(prompts, { 0, 1, 3 }, options); });
    is_ended([&] { session.dump(prompts[0], 2); });
    is_ended([&] { session.trace(prompts[0], 2); });

    session.cancel();
    CHECK(session.generate(prompts[0], options).finish_reason == FinishReason::cancelled);
    CHECK(session.generate(prompts[0], options).finish_reason != FinishReason::cancelled);
    session.cancel();
    session.reset_cancel();
    CHECK(session.generate_batch(prompts, options)[1].finish_reason != FinishReason::cancelled);
}

TEST_CASE("a request while a question is thought about ends it") {
    const GoldenCase golden("last");
    Session          session(load(golden), two_streams());
    GenerateOptions  options;
    options.n_steps     = 6;
    options.n_predict   = 4;
    int          n_seen = 0;
    const Answer answer = session.generate(golden.prompt_ids(0), options, {}, [&](const TraceStep & step) {
        n_seen++;
        if (step.t == 2) {
            session.cancel();
        }
        return true;
    });
    CHECK(n_seen == 3);
    CHECK(answer.finish_reason == FinishReason::cancelled);
    CHECK(answer.tokens.empty());
    CHECK(session.generate(golden.prompt_ids(0), options).tokens.size() == 4);
}
