// The planner of graph memory: no two tensors that are alive at one time share a byte, and memory is used again.
#include <doctest/doctest.h>

#include "base/rng.h"
#include "graph/graph.h"
#include "support/cpu.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>

using namespace penelope;
using penelope::test::cpu;

namespace {

Node owner(Node node) {
    return node->view_src ? node->view_src : node;
}

// For each pair of tensors with memory of their own: either the bytes are apart or one is used last before the other is
// made. A result may take the place of an operand that is used there last.
void check_no_overlap(Graph & g) {
    struct Span {
        int    made, last;
        char * first;
        size_t size;
    };
    std::map<Node, Span> spans;
    for (int i = 0; i < g.n_nodes(); i++) {
        Node node = ggml_graph_node(g.cgraph(), i);
        if (!node->view_src && !spans.count(node)) {
            spans[node] = { i, i, static_cast<char *>(node->data), ggml_nbytes(node) };
        }
        for (Node source : node->src) {
            if (source && !spans.count(owner(source))) { // an input
                spans[owner(source)] = { -1, i, static_cast<char *>(owner(source)->data), ggml_nbytes(owner(source)) };
            }
            if (source) {
                spans[owner(source)].last = i;
            }
        }
        spans[owner(node)].last = i;
        if (owner(node)->flags & GGML_TENSOR_FLAG_OUTPUT) {
            spans[owner(node)].last = g.n_nodes();
        }
    }
    int n_overlaps = 0;
    for (auto a = spans.begin(); a != spans.end(); ++a) {
        for (auto b = std::next(a); b != spans.end(); ++b) {
            const Span & x     = a->second;
            const Span & y     = b->second;
            const bool   apart = x.first + x.size <= y.first || y.first + y.size <= x.first;
            const bool   after = x.last <= y.made || y.last <= x.made;
            n_overlaps += !apart && !after;
        }
    }
    CHECK(n_overlaps == 0);
}

} // namespace

TEST_CASE("a long chain needs the memory of two of its links") {
    Graph g;
    Node  x = g.input("x", GGML_TYPE_F32, 256, 4);
    for (int i = 0; i < 100; i++) {
        x = ggml_cont(g.ctx(), ggml_transpose(g.ctx(), x));
    }
    g.output(x);
    g.allocate(cpu());
    CHECK(g.n_bytes() == 2 * 256 * 4 * sizeof(float));
    check_no_overlap(g);
}

TEST_CASE("elementwise operations on values nobody needs again run in place") {
    Graph g;
    Node  x = g.input("x", GGML_TYPE_F32, 1000);
    Node  y = ggml_sqr(g.ctx(), x);
    for (int i = 0; i < 50; i++) {
        y = ggml_scale(g.ctx(), y, 0.5f);
    }
    g.output(y);
    g.allocate(cpu());
    CHECK(g.n_bytes() <= 4032);
    set_node(x, std::vector<float>(1000, 3.0f));
    g.compute(cpu());
    CHECK(get_node(y)[999] == doctest::Approx(9.0 * std::pow(0.5, 50)));
}

TEST_CASE("an operand read twice through different views is not overwritten") {
    Graph g;
    Node  x = g.input("x", GGML_TYPE_F32, 8, 8);
    Node  y = ggml_sqr(g.ctx(), x);
    Node  z = ggml_add(g.ctx(), y, ggml_transpose(g.ctx(), y));
    g.output(z);
    g.allocate(cpu());
    std::vector<float> values(64);
    for (size_t i = 0; i < values.size(); i++) {
        values[i] = float(i);
    }
    set_node(x, values);
    g.compute(cpu());
    const std::vector<float> sum = get_node(z);
    for (size_t r = 0; r < 8; r++) {
        for (size_t c = 0; c < 8; c++) {
            CHECK(sum[8 * r + c] == values[8 * r + c] * values[8 * r + c] + values[8 * c + r] * values[8 * c + r]);
        }
    }
}

TEST_CASE("random graphs with thousands of free-list entries") {
    Rng rng(5);
    for (int round = 0; round < 5; round++) {
        Graph             g;
        std::vector<Node> alive{ g.input("x", GGML_TYPE_F32, 16, 16) };
        std::vector<Node> results;
        for (int i = 0; i < 1200; i++) {
            Node       a    = alive[rng.below(alive.size())];
            Node       b    = alive[rng.below(alive.size())];
            const auto kind = rng.below(5);
            const auto n    = a->ne[1] > 512 ? a->ne[1] : a->ne[1] * 2;
            Node       y    = kind == 0   ? ggml_cont(g.ctx(), ggml_transpose(g.ctx(), a))
                              : kind == 1 ? ggml_scale(g.ctx(), a, 0.5f)
                              : kind == 2 ? ggml_repeat_4d(g.ctx(), a, a->ne[0], n, 1, 1)
                              : kind == 3 ? ggml_view_2d(g.ctx(), a, a->ne[0], (a->ne[1] + 1) / 2, a->nb[1], 0)
                              : ggml_are_same_shape(a, b) ? ggml_add(g.ctx(), a, b)
                                                          : ggml_sqr(g.ctx(), a);
            if (!ggml_is_contiguous(y)) {
                y = ggml_cont(g.ctx(), y);
            }
            g.expand(y);
            alive.push_back(y);
            if (alive.size() > 300) {
                alive.erase(alive.begin() + ptrdiff_t(rng.below(alive.size())));
            }
            if (i % 400 == 399) {
                g.output(y);
            }
        }
        g.allocate(cpu());
        check_no_overlap(g);
    }
}

TEST_CASE("a graph can reuse a workspace after another graph") {
    Workspace shared(cpu());
    Graph     first, second;
    Node      x = first.input("x", GGML_TYPE_F32, 64);
    Node      y = ggml_sqr(first.ctx(), x);
    Node      p = second.input("p", GGML_TYPE_F32, 4096);
    Node      q = ggml_sqr(second.ctx(), p);
    first.output(y);
    second.output(q);
    for (float value : { 2.0f, 3.0f }) {
        first.allocate(cpu(), shared);
        set_node(x, std::vector<float>(64, value));
        first.compute(cpu());
        CHECK(get_node(y)[63] == value * value);
        second.allocate(cpu(), shared);
        set_node(p, std::vector<float>(4096, -value));
        second.compute(cpu());
        CHECK(get_node(q)[4095] == value * value);
    }
}

namespace {

struct Bytes {
    const char * first;
    size_t       size;
};
Bytes bytes_of(Node node) {
    return { static_cast<const char *>(node->data), ggml_nbytes(node) };
}

// What a kernel made of the whole chain needs: while it writes `last` it reads the operands of `first`. Element for
// element it may write where it reads; anywhere else it must not.
void check_fusable(Graph & g, Node first, Node last, bool row_by_row) {
    g.output(last);
    g.allocate(cpu());
    const Bytes result = bytes_of(last);
    for (Node source : first->src) {
        if (!source) {
            continue;
        }
        const Bytes operand = bytes_of(source);
        const bool  apart = operand.first + operand.size <= result.first || result.first + result.size <= operand.first;
        const bool  same  = row_by_row && operand.first == result.first && operand.size == result.size;
        CHECK((apart || same));
    }
}

} // namespace

TEST_CASE("the last node of a chain that backends fuse lies on no operand of the first") {
    constexpr int64_t kWidth = 32, kRows = 8;
    const auto        chain = [](const std::function<void(Graph &, Node)> & build) {
        Graph g;
        Node  x = ggml_sqr(g.ctx(), g.input("x", GGML_TYPE_F32, kWidth, kRows)); // dies inside the chain
        build(g, x);
    };
    const auto weight = [](Graph & g) { return g.input("w", GGML_TYPE_F32, kWidth, kWidth); };
    const auto other  = [](Graph & g) { return ggml_sqr(g.ctx(), g.input("o", GGML_TYPE_F32, kWidth, kRows)); };
    const auto row    = [](Graph & g) { return g.input("row", GGML_TYPE_F32, kWidth); };

    chain([&](Graph & g, Node x) { // product + bias
        Node product = ggml_mul_mat(g.ctx(), weight(g), x);
        check_fusable(g, product, ggml_add(g.ctx(), product, row(g)), false);
    });
    chain([&](Graph & g, Node x) { // product added to what it read, which could give its place just as well
        Node product = ggml_mul_mat(g.ctx(), weight(g), x);
        check_fusable(g, product, ggml_add(g.ctx(), x, product), false);
    });
    chain([&](Graph & g, Node x) { // product + bias + residual
        Node product = ggml_mul_mat(g.ctx(), weight(g), x);
        Node biased  = ggml_add(g.ctx(), product, row(g));
        check_fusable(g, product, ggml_add(g.ctx(), x, biased), false);
    });
    chain([&](Graph & g, Node x) { // norm * weight + residual
        Node unit = ggml_rms_norm(g.ctx(), x, 1e-5f);
        check_fusable(g, unit, ggml_add(g.ctx(), ggml_mul(g.ctx(), unit, row(g)), other(g)), true);
    });
    chain([&](Graph & g, Node x) { // gate
        Node gate = ggml_silu(g.ctx(), x);
        check_fusable(g, gate, ggml_mul(g.ctx(), gate, other(g)), true);
    });
    chain([&](Graph & g, Node x) { // a row of additions
        Node first = ggml_add(g.ctx(), x, other(g));
        check_fusable(g, first, ggml_add(g.ctx(), ggml_add(g.ctx(), first, other(g)), x), true);
    });
}

TEST_CASE("a softmax never gives its place to its own gradient") {
    Graph g;
    Node  soft = ggml_soft_max(g.ctx(), g.input("x", GGML_TYPE_F32, 32, 8));
    Node  dy   = g.input("dy", GGML_TYPE_F32, 32, 8);
    Node  back = ggml_soft_max_ext_back(g.ctx(), dy, soft, 1.0f, 0.0f);
    g.output(back);
    g.output(ggml_sqr(g.ctx(), dy)); // so that only the softmax could give
    g.allocate(cpu());
    CHECK(back->data != soft->data);
    CHECK(back->data != dy->data);
}
