// The convolution and the delta rule: gradients against central differences, and the form with a tape against ggml's
// fused kernels.
#include "support/gradient_check.h"

#include "graph/ops.h"
#include "graph/ops_delta.h"

using namespace gradient_check;
using penelope::DeltaResult;
using penelope::DeltaShape;

namespace {

// Everything an operation gives, as one row.
Node flat(Graph & g, Node a, Node b) {
    const auto row = [&](Node x) { return penelope::reshape_rows(g, x, ggml_nelements(x), 1); };
    return penelope::concat_features(g, row(a), row(b));
}

// Keys of length one, decays below zero, beta between zero and one, as a layer makes them.
Node delta(Graph & g, const std::vector<Node> & x, const DeltaShape & shape, bool fused) {
    const int64_t S     = shape.head_dim;
    const auto    units = [&](Node heads) {
        Node rows = penelope::reshape_rows(g, heads, S, ggml_nelements(heads) / S);
        Node unit = penelope::scale(g, penelope::rms_norm(g, rows, nullptr, 1e-6f), 1.0f / std::sqrt(float(S)));
        return penelope::reshape_rows(g, unit, heads->ne[0], heads->ne[1]);
    };
    Node             q = units(x[0]), k = units(x[1]);
    Node             decay = penelope::scale(g, penelope::softplus(g, x[3]), -0.5f);
    Node             beta  = penelope::sigmoid(g, x[4]);
    penelope::Tape * tape  = fused ? g.set_tape(nullptr) : g.tape();
    Node             state = x.size() > 5 ? x[5] : nullptr;
    if (fused && !state) {
        state = ggml_fill(g.ctx(), ggml_repeat_4d(g.ctx(), x[0], S * S * shape.n_value_heads, x[0]->ne[1], 1, 1), 0.0f);
        state = ggml_view_1d(g.ctx(), state, S * S * shape.n_value_heads, 0);
    }
    const DeltaResult result = penelope::gated_delta(g, q, k, x[2], decay, beta, state, shape);
    Node              all    = flat(g, fused ? ggml_cont(g.ctx(), result.y) : result.y, result.state);
    g.set_tape(tape);
    return all;
}

std::vector<Leaf> delta_leaves(const DeltaShape & s, int64_t n, bool state) {
    std::vector<Leaf> leaves{ leaf({ s.head_dim * s.n_key_heads, n }, 1), leaf({ s.head_dim * s.n_key_heads, n }, 2),
                              leaf({ s.head_dim * s.n_value_heads, n }, 3), leaf({ s.n_value_heads, n }, 4),
                              leaf({ s.n_value_heads, n }, 5) };
    if (state) {
        leaves.push_back(leaf({ s.head_dim * s.head_dim * s.n_value_heads }, 6));
    }
    return leaves;
}

} // namespace

TEST_CASE("gradients of the delta rule, in one chunk and in several, from zeros and from a state") {
    const DeltaShape shape{ 4, 1, 2 };
    for (int64_t n : { 5, 16, 19 }) {
        for (bool state : { false, true }) {
            CAPTURE(n);
            CAPTURE(state);
            check(delta_leaves(shape, n, state),
                  [&](Graph & g, const std::vector<Node> & x, Fills &) { return delta(g, x, shape, false); });
        }
    }
}

TEST_CASE("chunks give what the fused kernel gives") {
    const DeltaShape shape{ 16, 2, 4 };
    for (int64_t n : { 1, 8, 10, 16, 17, 33 }) {
        for (bool state : { false, true }) {
            CAPTURE(n);
            CAPTURE(state);
            const auto leaves = delta_leaves(shape, n, state);
            const auto run    = [&](bool fused) {
                const auto build = [&](Graph & g, const std::vector<Node> & x, Fills &) {
                    return delta(g, x, shape, fused);
                };
                return Program(leaves, build, false).run(leaves, {}).value;
            };
            CHECK(relative_difference(run(false), run(true)) < 1e-5);
        }
    }
}

TEST_CASE("the convolution: gradients, and the fused kernel's numbers") {
    for (int64_t n : { 1, 2, 7 }) {
        CAPTURE(n);
        const std::vector<Leaf> leaves{ leaf({ 6, n }, 1), leaf({ 4, 6 }, 2), leaf({ 6 * 3 }, 3) };
        check(leaves, [](Graph & g, const std::vector<Node> & x, Fills &) {
            const penelope::Convolved c = penelope::causal_conv(g, x[0], x[1], x[2]);
            return flat(g, c.y, c.tail);
        });
        check({ leaves[0], leaves[1] }, [](Graph & g, const std::vector<Node> & x, Fills &) {
            return penelope::causal_conv(g, x[0], x[1], nullptr).y;
        });
        // The fused form keeps its tail the other way round: three rows of one feature side by side.
        const auto run = [&](bool fused) {
            return Program(
                       leaves,
                       [&](Graph & g, const std::vector<Node> & x, Fills &) {
                           penelope::Tape * tape = fused ? g.set_tape(nullptr) : g.tape();
                           Node             past = x[2];
                           if (fused) {
                               past = ggml_transpose(g.ctx(), ggml_reshape_2d(g.ctx(), past, 6, 3));
                               past = ggml_reshape_1d(g.ctx(), ggml_cont(g.ctx(), past), 18);
                           }
                           const penelope::Convolved c    = penelope::causal_conv(g, x[0], x[1], past);
                           Node                      tail = c.tail;
                           if (fused) {
                               tail = ggml_transpose(g.ctx(), ggml_reshape_2d(g.ctx(), tail, 3, 6));
                               tail = ggml_cont(g.ctx(), tail);
                           }
                           Node all = flat(g, c.y, tail);
                           g.set_tape(tape);
                           return all;
                       },
                       false)
                .run(leaves, {})
                .value;
        };
        CHECK(relative_difference(run(false), run(true)) < 1e-6);
    }
}
