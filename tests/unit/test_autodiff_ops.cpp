// Every element-wise, norm and row operation against central differences.
#include "support/gradient_check.h"

#include "graph/ops.h"

using namespace gradient_check;

namespace {

Build unary(Node (*op)(Graph &, Node)) {
    return [op](Graph & g, const std::vector<Node> & x, Fills &) { return op(g, x[0]); };
}

Build binary(Node (*op)(Graph &, Node, Node)) {
    return [op](Graph & g, const std::vector<Node> & x, Fills &) { return op(g, x[0], x[1]); };
}

} // namespace

TEST_CASE("two tensors of one shape") {
    for (auto op : { penelope::add, penelope::sub, penelope::mul, penelope::swiglu }) {
        check({ leaf({ 5, 3 }, 1), leaf({ 5, 3 }, 2) }, binary(op));
    }
}

TEST_CASE("a row for all rows") {
    for (auto op : { penelope::add, penelope::mul }) {
        check({ leaf({ 7, 5 }, 1), leaf({ 7 }, 2) }, binary(op));
        check({ leaf({ 7, 1 }, 1), leaf({ 7 }, 2) }, binary(op));
    }
}

TEST_CASE("a single value for everything") {
    check({ leaf({ 7, 5 }, 1), leaf({ 1 }, 2) }, binary(penelope::mul_scalar));
}

TEST_CASE("one tensor") {
    for (auto op : { penelope::tanh, penelope::sigmoid, penelope::silu, penelope::gelu_tanh }) {
        check({ leaf({ 13, 3 }, 3) }, unary(op));
    }
    check({ leaf({ 13, 3 }, 3) },
          [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::scale(g, x[0], -1.7f, 0.3f); });
}

TEST_CASE("saturated tanh, sigmoid, silu and gelu have finite gradients") {
    Leaf x   = leaf({ 4, 1 }, 1);
    x.values = { -95.0f, 95.0f, -20.0f, 0.0f };
    for (auto op : { penelope::tanh, penelope::sigmoid, penelope::silu, penelope::gelu_tanh }) {
        const Result result = gradients({ x }, unary(op));
        for (float value : result.gradients[0]) {
            CHECK(std::isfinite(value));
        }
    }
}

TEST_CASE("norms") {
    check({ leaf({ 11, 4 }, 1), leaf({ 11 }, 2) },
          [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::rms_norm(g, x[0], x[1], 1e-5f); });
    check({ leaf({ 11, 4 }, 1), leaf({ 11 }, 2), leaf({ 11 }, 3) },
          [](Graph & g, const std::vector<Node> & x, Fills &) {
              return penelope::layer_norm(g, x[0], x[1], x[2], 1e-5f);
          });
}

TEST_CASE("layer norm of rows far from zero with a large epsilon") {
    Leaf x = leaf({ 9, 3 }, 1);
    for (float & value : x.values) {
        value += 3.0f;
    }
    check({ x, leaf({ 9 }, 2), leaf({ 9 }, 3) }, [](Graph & g, const std::vector<Node> & leaves, Fills &) {
        return penelope::layer_norm(g, leaves[0], leaves[1], leaves[2], 0.5f);
    });
}

TEST_CASE("rows put together") {
    check({ leaf({ 5, 2 }, 1), leaf({ 5, 1 }, 2), leaf({ 5, 4 }, 3) },
          [](Graph & g, const std::vector<Node> & x, Fills &) {
              return penelope::concat_rows(g, { x[0], x[1], x[2] });
          });
    check({ leaf({ 5, 2 }, 1), leaf({ 5, 3 }, 2) }, [](Graph & g, const std::vector<Node> & x, Fills &) {
        return penelope::concat_rows(g, { x[1], x[0], x[1], x[0], x[0] }); // the same part several times
    });
    check({ leaf({ 3, 4 }, 1), leaf({ 6, 4 }, 2) }, binary(penelope::concat_features));
}

TEST_CASE("rows taken apart") {
    check({ leaf({ 5, 7 }, 1) },
          [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::slice_rows(g, x[0], 2, 3); });
    check({ leaf({ 9, 4 }, 1) },
          [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::slice_features(g, x[0], 4, 3); });
}

TEST_CASE("slices that cover everything, overlap, leave gaps and meet a use of the whole") {
    const auto squared_slice = [](Graph & g, Node x, int64_t first, int64_t count) {
        Node slice = penelope::slice_rows(g, x, first, count);
        return penelope::mul(g, slice, slice);
    };
    check({ leaf({ 5, 7 }, 1) }, [&](Graph & g, const std::vector<Node> & x, Fills &) {
        return penelope::concat_rows(g, { squared_slice(g, x[0], 4, 3), squared_slice(g, x[0], 0, 4) });
    });
    check({ leaf({ 5, 7 }, 1) }, [&](Graph & g, const std::vector<Node> & x, Fills &) {
        return penelope::concat_rows(
            g, { squared_slice(g, x[0], 0, 4), squared_slice(g, x[0], 2, 4), squared_slice(g, x[0], 2, 1) });
    });
    check({ leaf({ 5, 7 }, 1) }, [&](Graph & g, const std::vector<Node> & x, Fills &) {
        Node y = penelope::concat_rows(g, { x[0], squared_slice(g, x[0], 1, 2), squared_slice(g, x[0], 5, 2) });
        return penelope::mul(g, y, y);
    });
    check({ leaf({ 6, 4 }, 1) }, [&](Graph & g, const std::vector<Node> & x, Fills &) {
        Node inner = penelope::scale(g, x[0], 0.7f); // not a leaf: its slices are settled on the way
        Node rows  = squared_slice(g, inner, 1, 2);
        Node wide  = penelope::slice_features(g, inner, 0, 3);
        Node right = penelope::slice_features(g, inner, 3, 3);
        Node both  = penelope::mul(g, wide, right);
        return penelope::concat_rows(g, { rows, penelope::concat_features(g, both, both) });
    });
}

TEST_CASE("rows repeated, averaged, gathered and reshaped") {
    check({ leaf({ 5, 2 }, 1) },
          [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::repeat_rows(g, x[0], 3); });
    check({ leaf({ 5, 6 }, 1) },
          [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::mean_rows(g, x[0], 3); });
    check({ leaf({ 5, 6 }, 1) }, [](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node index = g.input("index", GGML_TYPE_I32, 3);
        fill(fills, index, std::vector<int32_t>{ 4, 0, 3 });
        return penelope::gather_rows(g, x[0], index);
    });
    check({ leaf({ 5, 6 }, 1) },
          [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::reshape_rows(g, x[0], 15, 2); });
}

TEST_CASE("a mean over groups is taken group by group") {
    Leaf x              = leaf({ 1, 6 }, 1);
    x.values            = { 1, 2, 3, 10, 20, 30 };
    const Result result = gradients({ x }, [](Graph & g, const std::vector<Node> & leaves, Fills &) {
        return penelope::mean_rows(g, leaves[0], 3);
    });
    CHECK(result.value == std::vector<float>{ 2, 20 });
}

TEST_CASE("the gradient of the rows looked up in a table adds up where a row repeats") {
    check({ leaf({ 5, 9 }, 1) }, [](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node ids = g.input("ids", GGML_TYPE_I32, 5);
        fill(fills, ids, std::vector<int32_t>{ 8, 2, 2, 0, 2 });
        Node rows = penelope::embed(g, x[0], ids);
        return penelope::mul(g, rows, rows);
    });
}

TEST_CASE("a tensor used several times gets the sum") {
    check({ leaf({ 5, 3 }, 1) }, [](Graph & g, const std::vector<Node> & x, Fills &) {
        Node a = penelope::tanh(g, x[0]);
        Node b = penelope::mul(g, a, x[0]);
        return penelope::add(g, penelope::mul(g, a, b), penelope::add(g, a, a));
    });
}

TEST_CASE("nothing is built for what is not watched") {
    const Build build = [](Graph & g, const std::vector<Node> & x, Fills &) {
        return penelope::rms_norm(g, penelope::swiglu(g, x[0], x[1]), x[2], 1e-5f);
    };
    const std::vector<Leaf> leaves = { leaf({ 5, 3 }, 1), leaf({ 5, 3 }, 2), leaf({ 5 }, 3) };
    const Result            all    = gradients(leaves, build);
    const Result            one    = gradients(leaves, build, { false, true, false });
    const Result            none   = gradients(leaves, build, { false, false, false });
    CHECK(one.gradients[0].empty());
    CHECK(one.gradients[2].empty());
    CHECK(one.gradients[1] == all.gradients[1]);
    CHECK(one.n_nodes < all.n_nodes);
    CHECK(none.n_nodes < one.n_nodes);
    CHECK(none.gradients[1].empty());
}
