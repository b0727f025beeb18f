// Paired bootstrap and spread.
#include <doctest/doctest.h>

#include "base/error.h"
#include "task/compare.h"
#include "task/listops.h"

#include <cmath>
#include <map>

using namespace penelope;

namespace {

std::vector<Outcome> outcomes(int n, int n_correct, const std::string & prefix = "q",
                              const std::string & question = "?") {
    std::vector<Outcome> rows;
    for (int i = 0; i < n; i++) {
        rows.push_back({ prefix + std::to_string(i), question, i < n_correct ? 1.0 : 0.0 });
    }
    return rows;
}

Prediction prediction(const std::string & id, int n_steps, bool correct) {
    Prediction p;
    p.id      = id;
    p.n_steps = n_steps;
    p.correct = correct;
    return p;
}

} // namespace

TEST_CASE("the same predictions differ by nothing") {
    const PairedDifference d = paired_bootstrap(outcomes(100, 50), outcomes(100, 50));
    CHECK(d.n == 100);
    CHECK(d.difference == 0.0);
    CHECK(d.low == 0.0);
    CHECK(d.high == 0.0);
}

TEST_CASE("a gain of 20 in 400 has the interval of a proportion") {
    const PairedDifference d = paired_bootstrap(outcomes(400, 200), outcomes(400, 220));
    CHECK(d.difference == doctest::Approx(0.05));
    // Standard error of 20 gains in 400 is sqrt(.05 * .95 / 400) = .0109.
    CHECK(std::abs(d.low - (0.05 - 1.96 * 0.0109)) < 0.003);
    CHECK(std::abs(d.high - (0.05 + 1.96 * 0.0109)) < 0.003);
    const PairedDifference again = paired_bootstrap(outcomes(400, 200), outcomes(400, 220));
    CHECK(again.low == d.low);
    CHECK(again.high == d.high);
}

TEST_CASE("sets about other questions are refused") {
    CHECK_THROWS_AS(paired_bootstrap(outcomes(10, 5), outcomes(11, 5)), Error);
    CHECK_THROWS_AS(paired_bootstrap(outcomes(10, 5), outcomes(10, 5, "other")), Error);
    CHECK_THROWS_AS(paired_bootstrap(outcomes(10, 5), outcomes(10, 5, "q", "another?")), Error);
    CHECK_THROWS_AS(paired_bootstrap({}, {}), Error);
}

TEST_CASE("several runs count by the share of them that is right, each at its own K or all at one") {
    Evaluation first, second;
    first.predictions    = { prediction("a", 0, true), prediction("a", 3, true), prediction("b", 0, false),
                             prediction("b", 3, false) };
    first.default_steps  = 3;
    second.predictions   = { prediction("a", 0, true), prediction("a", 3, false), prediction("b", 0, true),
                             prediction("b", 3, false) };
    second.default_steps = 0;
    for (Evaluation * run : { &first, &second }) {
        run->scores = score(run->predictions);
    }
    const auto shares = [&](int steps) {
        std::map<std::string, double> by_id;
        for (const Outcome & outcome : outcomes_of({ first, second }, steps, "file").questions) {
            by_id[outcome.id] = outcome.share;
        }
        return by_id;
    };
    CHECK(shares(-1) == std::map<std::string, double>{ { "a", 1.0 }, { "b", 0.5 } });
    CHECK(shares(3) == std::map<std::string, double>{ { "a", 0.5 }, { "b", 0.0 } });
    CHECK(outcomes_of({ first, second }, -1, "file").steps == std::vector<int>{ 0, 3 });
    CHECK(outcomes_of({ first, second }, 3, "file").steps == std::vector<int>{ 3 });
    CHECK_THROWS_AS(outcomes_of({ first, second }, 7, "file"), Error);
}

TEST_CASE("a run is judged at the K its file names or at its only one, never at the best on the questions") {
    Evaluation run;
    run.default_steps = 3;
    run.predictions   = { prediction("a", 0, true), prediction("a", 3, false) };
    run.scores        = score(run.predictions);
    CHECK(best_steps(run.scores) == 0);
    CHECK(chosen_score(run, "run").n_steps == 3);
    run.default_steps = 5;
    CHECK(find_chosen_score(run) == nullptr);
    CHECK_THROWS_AS(chosen_score(run, "run"), Error);
    run.predictions.pop_back();
    run.scores = score(run.predictions);
    CHECK(chosen_score(run, "run").n_steps == 0);
}

TEST_CASE("a run is set against the guess of its task, question by question") {
    Evaluation run;
    for (int i = 0; i < 10; i++) {
        Prediction p = prediction("q" + std::to_string(i), 2, i < 8);
        p.question   = "Evaluate: [MAX 1 [MIN 2 3]]"; // the guess: whatever is uniform beats 1
        p.answer     = i < 5 ? listops_baseline_answer(p.question) : "x";
        run.predictions.push_back(p);
    }
    run.scores        = score(run.predictions);
    run.default_steps = 2;
    const auto d      = difference_to_chance(run, find_task("listops"));
    REQUIRE(d.has_value());
    CHECK(d->difference == doctest::Approx(0.3));
    CHECK(d->low >= 0.0);
    CHECK(d->high <= 0.7);
    CHECK(!difference_to_chance(run, find_task("prosqa")));
    run.default_steps = 7;
    run.predictions.push_back(prediction("q0", 1, true));
    run.scores = score(run.predictions);
    CHECK(!difference_to_chance(run, find_task("listops")));
}

TEST_CASE("mean and sample standard deviation") {
    CHECK(mean_std({ 52.0, 53.0, 51.0 }).mean == doctest::Approx(52.0));
    CHECK(mean_std({ 52.0, 53.0, 51.0 }).sd == doctest::Approx(1.0));
    CHECK(mean_std({ 52.0 }).sd == 0.0);
}
