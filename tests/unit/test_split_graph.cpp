// Graphs in stages: the host may look in between, and nothing else changes.
#include "support/gradient_check.h"

#include "graph/ops.h"

#include <functional>
#include <numeric>

using namespace gradient_check;

namespace {

using Work = std::function<std::vector<float>(const std::vector<float> &)>;

struct Chain {
    Graph g;
    Node  x, told, before, view, result;

    // y = x^2; told = work(sum of y); result = (a view of y) * told + tanh(y), over and over.
    explicit Chain(const Work & work) {
        x      = g.input("x", GGML_TYPE_F32, 8, 6);
        told   = g.input("told", GGML_TYPE_F32, 1);
        before = penelope::mul(g, x, x);
        view   = penelope::slice_rows(g, before, 1, 3);
        if (work) {
            g.host_callback(ggml_sum(g.ctx(), before), told, work);
        }
        Node y = before;
        for (int i = 0; i < 4; i++) {
            y = penelope::add(g, penelope::scale(g, penelope::tanh(g, y), 0.5f), before);
        }
        result = penelope::add(g, penelope::mul_scalar(g, view, told), penelope::slice_rows(g, y, 2, 3));
        g.output(result);
    }

    std::vector<float> run(const std::vector<float> & values, float tell) {
        g.allocate(backend());
        g.set(x, values);
        g.set(told, std::vector<float>{ tell });
        g.compute(backend());
        return penelope::get_node(result);
    }
};

} // namespace

TEST_CASE("work of the host between two nodes") {
    const std::vector<float> values = random_values(48, 3);
    double                   sum    = 0;
    for (float value : values) {
        sum += double(value) * double(value);
    }
    int   n_calls = 0;
    Chain whole(nullptr);
    Chain cut([&](const std::vector<float> & seen) {
        n_calls++;
        CHECK(seen.size() == 1);
        CHECK(double(seen[0]) == doctest::Approx(sum));
        return std::vector<float>{ seen[0] * 2 };
    });
    for (int i = 1; i <= 3; i++) { // a graph is used again
        CHECK(relative_difference(cut.run(values, 0.0f), whole.run(values, float(2 * sum))) < 1e-6);
        CHECK(n_calls == i);
    }
}

TEST_CASE("an error of the host ends the computation") {
    Chain cut([](const std::vector<float> &) -> std::vector<float> {
        throw penelope::Error(penelope::ErrorKind::io, "told so");
    });
    CHECK_THROWS_AS(cut.run(random_values(48, 3), 0.0f), penelope::Error);
}

TEST_CASE("several graphs take turns in one workspace") {
    Chain               first([](const std::vector<float> &seen) { return seen; }), second(nullptr);
    penelope::Workspace workspace(backend());
    const auto          run = [&](Chain & chain, int seed) {
        chain.g.allocate(backend(), workspace);
        chain.g.set(chain.x, random_values(48, seed));
        chain.g.set(chain.told, std::vector<float>{ 1.0f });
        chain.g.compute(backend());
        return penelope::get_node(chain.result);
    };
    const std::vector<float> a = run(first, 1), b = run(second, 2);
    CHECK(run(first, 1) == a);
    CHECK(run(second, 2) == b);
}
