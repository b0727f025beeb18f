// Penelope a step at a time: sequences at different steps side by side give what each gives alone in one graph; looking
// on changes nothing; and a trajectory that has settled ends early.
#include <doctest/doctest.h>

#include "base/error.h"
#include "infer/halting.h"
#include "infer/session.h"
#include "method/decode.h"
#include "support/difference.h"
#include "support/golden.h"

#include <cmath>

using namespace penelope;
using penelope::test::GoldenCase;

namespace {

constexpr double kTolerance = 2e-4;

std::shared_ptr<const Engine> load(const GoldenCase & golden) {
    LoadOptions options;
    options.base    = golden.backbone();
    options.sidecar = golden.sidecar();
    options.device  = "CPU";
    return Engine::load(options);
}

SessionOptions three_streams() {
    SessionOptions options;
    options.kv_type   = GGML_TYPE_F32;
    options.n_threads = 1;
    options.n_streams = 3;
    options.n_ctx     = 160;
    return options;
}

} // namespace

TEST_CASE("streams at different steps") {
    for (const char * name : { "last", "middle", "full", "overwrite" }) {
        CAPTURE(name);
        const GoldenCase golden(name);
        const auto       engine = load(golden);
        const Method &   method = engine->method("");
        Session          session(engine, three_streams());
        Context &        context = session.context();
        LatentSteps &    steps   = *method.steps(context);

        // Stream 2 gets three steps, stream 0 one, and the one joins when the other is under way.
        steps.start({ { golden.prompt_ids(0), 2, 0 } });
        steps.advance({ 2 });
        steps.start({ { golden.prompt_ids(1), 0, 0 } });
        steps.advance({ 0, 2 });
        steps.advance({ 2 });
        CHECK(steps.step(2) == 3);
        CHECK(steps.step(0) == 1);
        const Prefill both = steps.finish({ 2, 0 });
        CHECK(test::difference(both.logits[0], golden.tensor("K3.ex0.first_logits")) < kTolerance);
        CHECK(test::difference(both.logits[1], golden.tensor("K1.ex1.first_logits")) < kTolerance);
        CHECK(both.n_past[0] == int(golden.prompt_ids(0).size()) + method.n_extra_rows(3));
        CHECK(steps.layer_applications(2) == golden.layer_applications(3));
        CHECK(steps.layer_applications(0) == golden.layer_applications(1));
        for (const StateTensor & state : steps.read_state(2)) {
            CAPTURE(state.name);
            if (state.name == "alpha") { // not in the reference: 1 + 0.5 tanh(s_t), Equation 8
                REQUIRE(state.data.size() == 1);
                CHECK(std::abs(state.data[0] - 1.0f) <= 0.5f);
                continue;
            }
            CHECK(test::difference(state.data, golden.tensor("K3.ex0." + state.name + "_3")) < kTolerance);
        }

        // Further steps are not disturbed by an answer that was written in between.
        decode(context, { { 2, both.n_past[0], 5 } });
        for (int t = 3; t < 6; t++) {
            steps.advance({ 2 });
        }
        CHECK(test::difference(steps.finish({ 2 }).logits[0], golden.tensor("K6.ex0.first_logits")) < kTolerance);
    }
}

TEST_CASE("watching changes nothing and can stop") {
    const GoldenCase golden("last");
    Session          session(load(golden), three_streams());
    GenerateOptions  options;
    options.n_steps   = 6;
    options.n_predict = 12;
    std::vector<int> seen;
    const Answer     watched = session.generate(golden.prompt_ids(0), options, {}, [&](const TraceStep & step) {
        seen.push_back(step.t);
        CHECK(step.memory_top.size() == 8);
        CHECK(step.readout_top.size() == 2);
        CHECK(step.features_top.size() == (step.t == 0 ? 0 : 8));
        CHECK(step.readout_cosines.size() == (step.t == 0 ? 0 : 2));
        return true;
    });
    CHECK(seen == std::vector<int>{ 0, 1, 2, 3, 4, 5, 6 });
    CHECK(watched.tokens == golden.greedy(6, 0));
    CHECK(watched.layer_applications == golden.layer_applications(6));

    const Answer stopped =
        session.generate(golden.prompt_ids(0), options, {}, [&](const TraceStep & step) { return step.t < 3; });
    CHECK(stopped.n_steps == 3);
    CHECK(stopped.tokens == golden.greedy(3, 0));
}

TEST_CASE("as many steps as it takes") {
    const GoldenCase golden("last");
    const auto       engine = load(golden);
    Session          session(engine, three_streams());
    GenerateOptions  options;
    options.n_steps   = kAutoSteps;
    options.n_predict = 4;
    CHECK_THROWS_AS(session.generate(golden.prompt_ids(0), options), Error); // the file says no threshold

    // The cosines of this question, from which the step it stops at follows.
    std::vector<double> cosines{ -1 };
    options.n_steps = 8;
    session.generate(golden.prompt_ids(0), options, {}, [&](const TraceStep & step) {
        if (step.t > 0) {
            cosines.push_back(double(std::min(step.readout_cosines[0], step.readout_cosines[1])));
        }
        return true;
    });
    REQUIRE(cosines.size() == 9);
    options.n_steps = kAutoSteps;
    for (int t = 1; t <= 8; t++) {
        options.halt_cosine = float(cosines[size_t(t)]) - 1e-6f;
        int expected        = 1;
        while (expected < 8 && cosines[size_t(expected)] < double(options.halt_cosine)) {
            expected++;
        }
        CHECK(session.generate(golden.prompt_ids(0), options).n_steps == expected);
    }
    options.halt_cosine = 1.0f;
    CHECK(session.generate(golden.prompt_ids(0), options).n_steps == 8);

    // Side by side each stops on its own.
    options.halt_cosine               = float(cosines[2]) - 1e-6f;
    const std::vector<Answer> answers = session.generate_batch({ golden.prompt_ids(0), golden.prompt_ids(1) }, options);
    for (size_t i = 0; i < 2; i++) {
        const Answer alone = session.generate(golden.prompt_ids(i), options);
        CHECK(answers[i].n_steps == alone.n_steps);
        CHECK(answers[i].tokens == alone.tokens);
        CHECK(answers[i].layer_applications == alone.layer_applications);
    }
}
