// The threshold of -K auto from made-up courses of questions.
#include "task/calibrate_halting.h"

#include "base/error.h"

#include <doctest/doctest.h>

using namespace penelope;

namespace {

// A question that is right from step `depth` on, where its readout stops turning.
void add_question(std::vector<Prediction> & all, const std::string & id, int depth, int n_most) {
    for (int t = 0; t <= n_most; t++) {
        Prediction p;
        p.id      = id;
        p.n_steps = p.n_steps_taken = t;
        p.correct                   = t >= depth;
        p.step_cosine               = t == 0 ? -1.0f : t <= depth ? 0.5f + 0.01f * float(t) : 0.99f;
        all.push_back(p);
    }
}

} // namespace

TEST_CASE("stops where the readout does") {
    std::vector<Prediction> all;
    for (int depth = 1; depth <= 4; depth++) {
        add_question(all, std::to_string(depth), depth, 8);
    }
    const HaltingCalibration choice = calibrate_halting(all, 8);
    CHECK(choice.threshold >= 0.54f);
    CHECK(choice.threshold <= 0.99f);
    CHECK(choice.exact == 1.0);
    // The step after the last that was needed, but for the deepest question, which no threshold for the others
    // disturbs.
    CHECK(choice.n_steps_taken == doctest::Approx((2 + 3 + 4 + 4) / 4.0));
    CHECK(choice.reference == 1.0);
}

TEST_CASE("a tolerance buys steps") {
    std::vector<Prediction> all;
    for (int i = 0; i < 9; i++) {
        add_question(all, "easy" + std::to_string(i), 1, 6);
    }
    add_question(all, "hard", 6, 6);
    CHECK(calibrate_halting(all, 6, 0.0).exact == 1.0);
    const HaltingCalibration loose = calibrate_halting(all, 6, 0.11);
    CHECK(loose.exact == doctest::Approx(0.9));
    CHECK(loose.n_steps_taken == doctest::Approx(1.0));
}

TEST_CASE("every K has to be there") {
    std::vector<Prediction> all;
    add_question(all, "a", 2, 4);
    all.erase(all.begin() + 2);
    CHECK_THROWS_AS(calibrate_halting(all, 4), Error);
}
