#include "support/gradient_check.h"

#include "graph/ops.h"

using namespace gradient_check;
using penelope::Dropout;
using penelope::Linear;

namespace {

// The result of dropout on n ones with a number of threads.
std::vector<float> on_ones(const Dropout & source, int64_t n, int n_threads, int64_t n_draws_before = 0) {
    Backend device(penelope::find_device("CPU"), n_threads);
    Graph   g;
    g.set_next_draw(n_draws_before);
    Node x = g.input("x", GGML_TYPE_F32, n);
    Node y = penelope::dropout(g, x, source);
    g.output(y);
    g.allocate(device);
    penelope::set_node(x, std::vector<float>(size_t(n), 1.0f));
    g.compute(device);
    return penelope::get_node(y);
}

double share_of_zeros(const std::vector<float> & values) {
    return double(std::count(values.begin(), values.end(), 0.0f)) / double(values.size());
}

} // namespace

TEST_CASE("the share asked for is dropped and the mean stays") {
    for (float rate : { 0.05f, 0.5f, 0.0f }) {
        const std::vector<float> values = on_ones({ rate, 1, 1 }, 200000, 2);
        double                   sum    = 0.0;
        for (float value : values) {
            sum += value;
            CHECK((value == 0.0f || value == doctest::Approx(1.0 / (1.0 - rate)).epsilon(1e-4)));
        }
        CHECK(std::abs(share_of_zeros(values) - rate) < 0.005);
        CHECK(sum / double(values.size()) == doctest::Approx(1.0).epsilon(0.01));
    }
}

TEST_CASE("dropout masks do not depend on threads, but on seed, step and draw") {
    const std::vector<float> once = on_ones({ 0.3f, 1, 1 }, 10007, 1);
    for (int n_threads : { 1, 2, 3, 5 }) {
        CHECK(on_ones({ 0.3f, 1, 1 }, 10007, n_threads) == once);
    }
    CHECK(on_ones({ 0.3f, 2, 1 }, 10007, 2) != once);
    CHECK(on_ones({ 0.3f, 1, 2 }, 10007, 2) != once);
    CHECK(on_ones({ 0.3f, 1, 1 }, 10007, 2, 1) != once);
}

TEST_CASE("blocks take rows of the bank by the words of the project's generator") {
    const Dropout            source(0.25f, 0x123456789ABCDEFull, 77);
    const std::vector<float> values = on_ones(source, 64 * 21, 2, 3);
    const uint64_t           stream = penelope::stream_id("dropout", source.step << 20);
    for (uint64_t i = 0; i < values.size(); i++) {
        const uint64_t                block = i / 64;
        const penelope::PhiloxCounter words =
            penelope::philox4x32({ uint32_t(block / 4), 3, uint32_t(stream), uint32_t(stream >> 32) },
                                 { uint32_t(source.seed), uint32_t(source.seed >> 32) });
        REQUIRE(values[i] == source.bank()[words[block % 4] % 4096 * 64 + i % 64]);
    }
}

TEST_CASE("every column of the bank drops the share asked for") {
    const Dropout source(0.1f, 5, 0);
    for (size_t column = 0; column < 64; column++) {
        int n_zeros = 0;
        for (size_t pattern = 0; pattern < 4096; pattern++) {
            n_zeros += source.bank()[pattern * 64 + column] == 0.0f;
        }
        CHECK(n_zeros == 410);
    }
}

TEST_CASE("operations every device has drop the same elements as the kernel of the CPU") {
    for (int64_t width : { 64, 96, 10, 7 }) {
        CAPTURE(width);
        const Dropout source(0.3f, 9, 4);
        const Leaf    x     = leaf({ width, 11 }, 1);
        const Build   build = [&](Graph & g, const std::vector<Node> & leaves, Fills &) {
            return penelope::dropout(g, leaves[0], source);
        };
        const Result everywhere = gradients({ x }, build, {}, false);
        const Result kernel     = gradients({ x }, build, {}, true);
        CHECK(everywhere.value == kernel.value);
        CHECK(everywhere.gradients == kernel.gradients);
    }
}

TEST_CASE("an example loses the same elements wherever it lies") {
    // Rows of three sequences side by side, and of one of them alone, as rows 2 .. 5 of its sequence.
    Dropout    source(0.3f, 3, 8);
    const auto run = [&](const std::vector<penelope::SeqRange> & ranges, int64_t n_rows) {
        Graph g;
        g.set_dropout_rows(std::make_shared<std::vector<penelope::SeqRange>>(ranges));
        Node x = g.input("x", GGML_TYPE_F32, 192, n_rows);
        Node y = penelope::dropout(g, x, source);
        g.output(y);
        g.allocate(backend());
        penelope::set_node(x, std::vector<float>(size_t(192 * n_rows), 1.0f));
        g.compute(backend());
        return penelope::get_rows(y);
    };
    source.examples         = { 5, 6, 7 };
    const auto on_all_ranks = run({ { 0, 0, 3 }, { 1, 2, 4 }, { 2, 9, 1 } }, 8);
    source.examples         = { 6 };
    const auto alone        = run({ { 0, 2, 4 } }, 4);
    for (size_t i = 0; i < alone.size(); i++) {
        CHECK(alone[i] == on_all_ranks[3 + i]);
    }
    CHECK(run({ { 0, 3, 2 } }, 2)[0] == alone[1]);
    CHECK(run({ { 0, 3, 4 } }, 4) != alone);
    source.examples = { 7 };
    CHECK(run({ { 0, 2, 4 } }, 4) != alone);
    // A second sequence of the same example, a teacher's, takes the same number.
    source.examples = { 6 };
    CHECK(run({ { 1, 2, 4 } }, 4) == alone);
}

TEST_CASE("a graph that is computed again reads the step anew") {
    Dropout source(0.3f, 1, 1);
    Graph   g;
    Node    x = g.input("x", GGML_TYPE_F32, 1000);
    Node    y = penelope::dropout(g, x, source);
    g.output(y);
    g.allocate(backend());
    const auto run = [&](uint64_t step) {
        source.step = step;
        penelope::set_node(x, std::vector<float>(1000, 1.0f));
        g.compute(backend());
        return penelope::get_node(y);
    };
    const std::vector<float> first = run(1), second = run(2);
    CHECK(first != second);
    CHECK(run(1) == first);
}

TEST_CASE("gradients go through the elements that were kept") {
    const Dropout source(0.4f, 1, 1);
    check({ leaf({ 7, 5 }, 1) }, [&](Graph & g, const std::vector<Node> & x, Fills &) {
        Node y = penelope::dropout(g, x[0], source);
        return penelope::mul(g, y, y);
    });
}

TEST_CASE("low-rank updates read what dropout left of their input, the weight reads all of it") {
    const Dropout source(0.4f, 1, 1);
    const Build   build = [&](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node   frozen = g.input("frozen", GGML_TYPE_F32, 7, 6);
        Linear first, second;
        fill(fills, frozen, random_values(42, 9));
        first.weight = second.weight = frozen;
        first.lora                   = { x[1], x[2], 2.0f, &source };
        second.lora                  = { x[3], x[4], 0.5f, &source };
        return penelope::mul(g, penelope::linear(g, first, x[0]), penelope::linear(g, second, x[0]));
    };
    const std::vector<Leaf> leaves = { leaf({ 7, 5 }, 1), leaf({ 7, 2 }, 2), leaf({ 2, 6 }, 3), leaf({ 7, 3 }, 4),
                                       leaf({ 3, 6 }, 5) };
    check(leaves, build);

    // Against the same thing written out with one mask for both.
    const Result plain = gradients(leaves, [&](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node   frozen = g.input("frozen", GGML_TYPE_F32, 7, 6);
        Linear weight, a, b, c, d;
        fill(fills, frozen, random_values(42, 9));
        weight.weight = frozen;
        a.weight      = x[1];
        b.weight      = x[2];
        c.weight      = x[3];
        d.weight      = x[4];
        Node dropped  = penelope::dropout(g, x[0], source);
        Node first    = penelope::scale(g, penelope::linear(g, b, penelope::linear(g, a, dropped)), 2.0f);
        Node second   = penelope::scale(g, penelope::linear(g, d, penelope::linear(g, c, dropped)), 0.5f);
        Node base     = penelope::linear(g, weight, x[0]);
        return penelope::mul(g, penelope::add(g, base, first), penelope::add(g, base, second));
    });
    const Result fused = gradients(leaves, build);
    CHECK(relative_difference(fused.value, plain.value) < 1e-5);
    for (size_t i = 0; i < leaves.size(); i++) {
        CHECK(relative_difference(fused.gradients[i], plain.gradients[i]) < 1e-5);
    }
}
