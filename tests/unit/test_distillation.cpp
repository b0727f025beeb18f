// The distance of a student's states from its teacher's, and the activation of CODI's projection: values and gradients.
#include "graph/ops_distill.h"
#include "support/gradient_check.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace gradient_check;

namespace {

// Value and gradients of a single number or, for several, of their sum.
Result all_reduce_gradients(const std::vector<Leaf> & leaves, const Build & build) {
    Program program(leaves, build, true);
    return program.run(leaves, std::vector<float>(size_t(program.n_results()), 1.0f));
}

} // namespace

TEST_CASE("smooth L1 over the deviation of the teacher") {
    // Differences of 0.5, -3, 0 and 1; the teacher's deviation is that of 1, 2, 3, 4.
    const Leaf   student{ { 2, 2 }, { 1.5f, -1.0f, 3.0f, 5.0f } };
    const Leaf   teacher{ { 2, 2 }, { 1.0f, 2.0f, 3.0f, 4.0f } };
    const double mean               = (0.125 + 2.5 + 0.0 + 0.5) / 4;
    const double standard_deviation = std::sqrt(5.0 / 3.0);
    const Result result =
        all_reduce_gradients({ student, teacher }, [](Graph & g, const std::vector<Node> & x, Fills &) {
            return penelope::distillation(g, x[0], x[1], penelope::standard_deviation(g, x[1]));
        });
    CHECK(result.value[0] == doctest::Approx(mean / standard_deviation));
    const std::vector<double> slopes{ 0.5, -1.0, 0.0, 1.0 };
    for (size_t i = 0; i < slopes.size(); i++) {
        CHECK(result.gradients[0][i] == doctest::Approx(slopes[i] / 4 / standard_deviation));
    }
    CHECK(result.gradients[1].empty());
}

TEST_CASE("the deviation of parts is that of the whole") {
    const std::vector<float> all     = random_values(60, 4, 2.0);
    const auto               moments = [&](size_t first, size_t last) {
        double mean = 0, squares = 0;
        for (size_t i = first; i < last; i++) {
            mean += double(all[i]) / double(last - first);
        }
        for (size_t i = first; i < last; i++) {
            squares += (double(all[i]) - mean) * (double(all[i]) - mean);
        }
        return penelope::Moments{ double(last - first), mean, squares };
    };
    const double whole = penelope::standard_deviation({ moments(0, 60) });
    CHECK(penelope::standard_deviation({ moments(0, 7), moments(7, 30), moments(30, 60) }) == doctest::Approx(whole));
    const Leaf   x{ { 6, 10 }, all };
    const Result found = all_reduce_gradients(
        { x }, [](Graph & g, const std::vector<Node> & in, Fills &) { return penelope::moments(g, in[0]); });
    CHECK(std::sqrt(found.value[1] / 59) == doctest::Approx(whole).epsilon(1e-5));
}

TEST_CASE("the gradient of the student by differences") {
    for (double offset : { 0.0, 8.0 }) { // within the parabola, and beyond it
        check({ leaf({ 9, 4 }, 1, 0.2) }, [offset](Graph & g, const std::vector<Node> & x, Fills & fills) {
            std::vector<float> values = random_values(36, 2, 0.1);
            for (float & value : values) {
                value += float(offset);
            }
            Node teacher = g.input("teacher", GGML_TYPE_F32, 9, 4);
            fill(fills, teacher, values);
            return penelope::distillation(g, x[0], teacher, penelope::standard_deviation(g, teacher));
        });
    }
}

TEST_CASE("gelu is exact and so is its slope, at zero and far from it") {
    const Leaf   x{ { 6 }, { 0.0f, 1.0f, -1.0f, 1e-5f, -20.0f, 20.0f } };
    const Result result = all_reduce_gradients(
        { x }, [](Graph & g, const std::vector<Node> & in, Fills &) { return penelope::gelu(g, in[0]); });
    for (size_t i = 0; i < x.values.size(); i++) {
        const double v   = double(x.values[i]);
        const double phi = 0.5 * (1 + std::erf(v / std::sqrt(2.0)));
        CHECK(std::fabs(result.value[i] - v * phi) < 1e-5);
        CHECK(std::fabs(result.gradients[0][i] - (phi + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI))) < 1e-4);
    }
}
