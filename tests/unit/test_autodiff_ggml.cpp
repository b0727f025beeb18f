// Where ggml has a gradient rule of its own, ours gives the same.
#include "support/gradient_check.h"

#include "graph/ops.h"

using namespace gradient_check;
using penelope::Linear;
using penelope::RopeParams;

namespace {

// Gradients of sum(seed * f) by ggml's reverse mode on the nodes a graph without a tape puts down.
std::vector<std::vector<float>> by_ggml(const std::vector<Leaf> & leaves, const Build & build) {
    Graph             g;
    Fills             fills;
    std::vector<Node> nodes;
    for (const Leaf & item : leaves) {
        nodes.push_back(
            ggml_new_tensor_2d(g.ctx(), GGML_TYPE_F32, item.shape[0], item.shape.size() > 1 ? item.shape[1] : 1));
        ggml_set_param(nodes.back());
    }
    Node y    = build(g, nodes, fills);
    Node seed = ggml_new_tensor_2d(g.ctx(), GGML_TYPE_F32, y->ne[0], y->ne[1]);
    Node loss = ggml_sum(g.ctx(), ggml_mul(g.ctx(), y, seed));
    ggml_set_loss(loss);
    ggml_cgraph * graph = ggml_new_graph_custom(g.ctx(), 1000, true);
    ggml_build_forward_expand(graph, loss);
    ggml_build_backward_expand(g.ctx(), graph, nullptr);
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(g.ctx(), backend().get()));
    ggml_graph_reset(graph);
    for (size_t i = 0; i < leaves.size(); i++) {
        penelope::set_node(nodes[i], leaves[i].values);
    }
    for (const Fill & item : fills) {
        penelope::set_node(item.node, item.bytes.data(), item.bytes.size());
    }
    penelope::set_node(seed, random_values(ggml_nelements(y), 99));
    REQUIRE(ggml_backend_graph_compute(backend().get(), graph) == GGML_STATUS_SUCCESS);
    std::vector<std::vector<float>> gradients;
    for (Node node : nodes) {
        gradients.push_back(penelope::get_node(ggml_graph_get_grad(graph, node)));
    }
    return gradients;
}

void compare(const std::vector<Leaf> & leaves, const Build & build) {
    const std::vector<std::vector<float>> expected = by_ggml(leaves, build);
    const Result                          found    = gradients(leaves, build);
    for (size_t i = 0; i < leaves.size(); i++) {
        CAPTURE(i);
        CHECK(penelope::test::largest(expected[i]) > 0.0);
        CHECK(relative_difference(found.gradients[i], expected[i]) < 1e-5);
    }
}

} // namespace

TEST_CASE("element-wise operations") {
    const Leaf a = leaf({ 13, 5 }, 1), b = leaf({ 13, 5 }, 2), row = leaf({ 13 }, 3);
    for (auto op : { penelope::add, penelope::sub, penelope::mul, penelope::swiglu }) {
        compare({ a, b }, [op](Graph & g, const std::vector<Node> & x, Fills &) { return op(g, x[0], x[1]); });
    }
    for (auto op : { penelope::add, penelope::mul }) {
        compare({ a, row }, [op](Graph & g, const std::vector<Node> & x, Fills &) { return op(g, x[0], x[1]); });
    }
    compare({ a }, [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::silu(g, x[0]); });
    compare({ a }, [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::scale(g, x[0], 1.5f); });
}

TEST_CASE("products, norm, positions and rows") {
    compare({ leaf({ 24, 6 }, 1), leaf({ 24, 32 }, 2), leaf({ 32 }, 3) },
            [](Graph & g, const std::vector<Node> & x, Fills &) {
                Linear layer;
                layer.weight = x[1];
                layer.bias   = x[2];
                return penelope::linear(g, layer, x[0]);
            });
    compare({ leaf({ 24, 6 }, 1), leaf({ 24, 32 }, 2), leaf({ 24, 4 }, 3), leaf({ 4, 32 }, 4) },
            [](Graph & g, const std::vector<Node> & x, Fills &) {
                Linear layer;
                layer.weight = x[1];
                layer.lora   = { x[2], x[3], 2.0f };
                return penelope::linear(g, layer, x[0]);
            });
    compare({ leaf({ 24, 6 }, 1), leaf({ 24 }, 2) },
            [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::rms_norm(g, x[0], x[1], 1e-5f); });
    compare({ leaf({ 24, 6 }, 1) }, [](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node positions = ggml_new_tensor_1d(g.ctx(), GGML_TYPE_I32, 6);
        fill(fills, positions, std::vector<int32_t>{ 4, 0, 1, 9, 2, 3 });
        RopeParams params;
        params.n_dims = 8;
        return penelope::rope(g, x[0], positions, 8, params);
    });
    compare({ leaf({ 8, 5 }, 1) }, [](Graph & g, const std::vector<Node> & x, Fills & fills) {
        Node ids = ggml_new_tensor_1d(g.ctx(), GGML_TYPE_I32, 4);
        fill(fills, ids, std::vector<int32_t>{ 3, 3, 0, 4 });
        return penelope::embed(g, x[0], ids);
    });
    compare({ leaf({ 8, 2 }, 1) },
            [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::repeat_rows(g, x[0], 3); });
    compare({ leaf({ 8, 7 }, 1) },
            [](Graph & g, const std::vector<Node> & x, Fills &) { return penelope::slice_rows(g, x[0], 2, 3); });
}
