// Paired bootstrap and spread.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "base/error.h"
#include "task/compare.h"

using namespace penelope;

namespace {

std::vector<std::pair<std::string, bool>> outcomes(int n, int n_correct, const std::string & prefix = "q") {
    std::vector<std::pair<std::string, bool>> rows;
    for (int i = 0; i < n; i++) {
        rows.push_back({ prefix + std::to_string(i), i < n_correct });
    }
    return rows;
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
    CHECK(d.low == doctest::Approx(0.05 - 1.96 * 0.0109).epsilon(0.1));
    CHECK(d.high == doctest::Approx(0.05 + 1.96 * 0.0109).epsilon(0.1));
    const PairedDifference again = paired_bootstrap(outcomes(400, 200), outcomes(400, 220));
    CHECK(again.low == d.low);
    CHECK(again.high == d.high);
}

TEST_CASE("sets about other questions are refused") {
    CHECK_THROWS_AS(paired_bootstrap(outcomes(10, 5), outcomes(11, 5)), Error);
    CHECK_THROWS_AS(paired_bootstrap(outcomes(10, 5), outcomes(10, 5, "other")), Error);
    auto twice = outcomes(10, 5);
    twice.push_back(twice[0]);
    CHECK_THROWS_AS(paired_bootstrap(twice, outcomes(11, 5)), Error);
    CHECK_THROWS_AS(paired_bootstrap({}, {}), Error);
}

TEST_CASE("mean and sample standard deviation") {
    CHECK(spread({ 52.0, 53.0, 51.0 }).mean == doctest::Approx(52.0));
    CHECK(spread({ 52.0, 53.0, 51.0 }).sd == doctest::Approx(1.0));
    CHECK(spread({ 52.0 }).sd == 0.0);
}
