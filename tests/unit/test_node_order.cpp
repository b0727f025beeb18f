// Graphs of any number of nodes: nobody says beforehand how many there will be.
#include <doctest/doctest.h>

#include "base/rng.h"
#include "graph/graph.h"
#include "support/cpu.h"

using namespace penelope;
using penelope::test::cpu;

TEST_CASE("nodes come in ggml's own order") {
    Rng           rng(1);
    TensorHeaders headers;
    for (int round = 0; round < 20; round++) {
        std::vector<ggml_tensor *> all;
        for (int i = 0; i < 5; i++) {
            all.push_back(ggml_new_tensor_1d(headers.ctx(), GGML_TYPE_F32, 4));
        }
        for (int i = 0; i < 200; i++) {
            ggml_tensor * a = all[rng.below(all.size())];
            ggml_tensor * b = all[rng.below(all.size())];
            all.push_back(i % 3 == 0 ? ggml_sqr(headers.ctx(), a) : ggml_add(headers.ctx(), a, b));
        }
        const ggml_context_ptr ctx = [] {
            ggml_init_params params{};
            params.mem_size = ggml_graph_overhead_custom(1000, false);
            params.no_alloc = true;
            return ggml_context_ptr(ggml_init(params));
        }();
        ggml_cgraph * expected = ggml_new_graph_custom(ctx.get(), 1000, false);
        NodeOrder     order;
        for (size_t i : { all.size() - 3, all.size() / 2, all.size() - 1 }) {
            ggml_build_forward_expand(expected, all[i]);
            order.add(all[i]);
        }
        const OwnedGraph made = order.graph();
        REQUIRE(ggml_graph_n_nodes(made.graph) == ggml_graph_n_nodes(expected));
        for (int i = 0; i < ggml_graph_n_nodes(expected); i++) {
            CHECK(ggml_graph_node(made.graph, i) == ggml_graph_node(expected, i));
            CHECK(order.nodes()[size_t(i)] == ggml_graph_node(expected, i));
        }
    }
}

TEST_CASE("a graph takes as many nodes as are put down, and a chain of any length at once") {
    constexpr int n = 100000;
    Graph         g;
    Node          x = g.input("x", GGML_TYPE_F32, 2);
    Node          y = x;
    for (int i = 0; i < n; i++) {
        y = ggml_add(g.ctx(), y, x);
    }
    g.output(y);
    CHECK(g.n_nodes() == n);
    g.allocate(cpu());
    g.set(x, std::vector<float>{ 1.0f, -0.5f });
    g.compute(cpu());
    CHECK(get_node(y) == std::vector<float>{ n + 1.0f, -0.5f * (n + 1.0f) });
}

TEST_CASE("a graph may have more inputs than nodes") {
    Graph             g;
    std::vector<Node> inputs;
    Node              sum = nullptr;
    for (int i = 0; i < 5000; i++) {
        inputs.push_back(g.input("x" + std::to_string(i), GGML_TYPE_F32, 1));
    }
    for (size_t i = 0; i + 1 < inputs.size(); i += 2) {
        Node pair = ggml_concat(g.ctx(), inputs[i], inputs[i + 1], 0);
        sum       = sum ? ggml_add(g.ctx(), sum, pair) : pair;
        g.expand(sum);
    }
    g.output(sum);
    g.allocate(cpu());
    for (Node input : inputs) {
        g.set(input, std::vector<float>{ 1.0f });
    }
    g.compute(cpu());
    CHECK(get_node(sum) == std::vector<float>{ 2500.0f, 2500.0f });
}
