// Linear maps fitted to rows of numbers.
#include "base/ridge.h"
#include "base/rng.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace penelope;

namespace {

struct Rows {
    std::vector<float> x, y, importance;
};

// y = 2 x0 - x1 + 0.5, and the second output the negative of it; x1 is a hundred times as large as x0.
Rows linear_rows(size_t n) {
    Rng  rng(3);
    Rows rows;
    for (size_t i = 0; i < n; i++) {
        const float a = float(rng.normal()), b = 100 * float(rng.normal());
        const float y = 2 * a - b + 0.5f;
        rows.x.insert(rows.x.end(), { a, b });
        rows.y.insert(rows.y.end(), { y, -y });
        rows.importance.push_back(1);
    }
    return rows;
}

} // namespace

TEST_CASE("a linear map is found whatever the scale of its inputs") {
    const Rows      rows = linear_rows(200);
    const LinearMap map  = fit_ridge(rows.x, rows.y, rows.importance, 2, 2, 1e-9);
    CHECK(map.weight[0] == doctest::Approx(2).epsilon(1e-3));
    CHECK(map.weight[1] == doctest::Approx(-1).epsilon(1e-4));
    CHECK(map.weight[2] == doctest::Approx(-2).epsilon(1e-3));
    CHECK(map.bias[0] == doctest::Approx(0.5).epsilon(1e-2));
    CHECK(map.bias[1] == doctest::Approx(-0.5).epsilon(1e-2));
}

TEST_CASE("a penalty shrinks the weights and keeps the mean") {
    const Rows      rows  = linear_rows(200);
    const LinearMap loose = fit_ridge(rows.x, rows.y, rows.importance, 2, 2, 1e-9);
    const LinearMap tight = fit_ridge(rows.x, rows.y, rows.importance, 2, 2, 1.0);
    CHECK(std::abs(tight.weight[1]) < 0.6 * std::abs(loose.weight[1]));
    CHECK(std::abs(tight.weight[1]) > 0.4 * std::abs(loose.weight[1]));
    double gap = 0;
    for (size_t i = 0; i < 200; i++) {
        gap += tight.weight[0] * rows.x[2 * i] + tight.weight[1] * rows.x[2 * i + 1] + tight.bias[0] - rows.y[2 * i];
    }
    CHECK(gap / 200 == doctest::Approx(0).epsilon(1e-3));
}

TEST_CASE("rows count by their importance, and a constant input does no harm") {
    // Two rows that disagree: the important one wins. The second input never changes.
    const LinearMap map = fit_ridge({ 1, 7, 1, 7, 0, 7 }, { 10, 20, 0 }, { 1, 99, 1 }, 2, 1, 1e-6);
    CHECK(map.weight[0] + map.bias[0] == doctest::Approx(19.9).epsilon(1e-2));
    CHECK(map.weight[1] == 0);
}
