// Building a part of the graph again in the backward gives the same gradients in less memory.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support/gradient_check.h"

#include "graph/checkpoint.h"
#include "graph/ops.h"

using namespace gradient_check;
using penelope::AttentionShape;
using penelope::Dropout;
using penelope::Linear;

namespace {

constexpr int64_t kWidth = 16, kRank = 2;
constexpr int     kLayers = 6;

struct Kv {
    Node k, v;
};

// x + attention over itself and over what the store holds, then a gated layer; keys and values are left in the store.
Node layer(Graph & g, Node x, const std::vector<Node> & w, Node norm, Node frozen, std::vector<Kv> & store, const Dropout * dropout) {
    const AttentionShape shape = {4, 4, 4, 0.5f};
    Linear               projection;
    projection.weight = frozen;
    projection.lora   = {w[0], w[1], 2.0f, dropout};
    Node normed       = penelope::rms_norm(g, x, norm, 1e-5f);
    Node q            = penelope::linear(g, projection, normed);
    Node k            = penelope::tanh(g, penelope::linear(g, projection, normed));
    Node past_k       = store.empty() ? k : penelope::concat_rows(g, {store.back().k, k});
    Node past_v       = store.empty() ? normed : penelope::concat_rows(g, {store.back().v, normed});
    Node y            = penelope::add(g, x, penelope::attention(g, q, past_k, past_v, nullptr, shape));
    store.push_back({k, normed});
    y = penelope::add(g, y, penelope::swiglu(g, y, penelope::linear(g, projection, y)));
    g.mark_layer_application(y);
    return y;
}

// leaves: x, then A, B and the norm of every layer.
std::vector<Leaf> network_leaves(int64_t rows) {
    std::vector<Leaf> leaves = {leaf({kWidth, rows}, 1)};
    for (int il = 0; il < kLayers; il++) {
        leaves.push_back(leaf({kWidth, kRank}, uint64_t(10 + il), 0.3));
        leaves.push_back(leaf({kRank, kWidth}, uint64_t(20 + il), 0.3));
        leaves.push_back(leaf({kWidth}, uint64_t(30 + il)));
    }
    return leaves;
}

Build network(bool checkpointed, const Dropout * dropout = nullptr) {
    auto store = std::make_shared<std::vector<Kv>>();
    return [=](Graph & g, const std::vector<Node> & leaves, Fills & fills) {
        store->clear();
        Node frozen = g.input("frozen", GGML_TYPE_F32, kWidth, kWidth);
        fill(fills, frozen, random_values(kWidth * kWidth, 40, 0.2));
        Node x = leaves[0];
        for (int il = 0; il < kLayers; il++) {
            const std::vector<Node> w     = {leaves[size_t(3 * il + 1)], leaves[size_t(3 * il + 2)]};
            Node                    norm  = leaves[size_t(3 * il + 3)];
            const size_t            place = store->size();
            const auto              build = [&g, x, w, norm, frozen, store, place, dropout] {
                store->resize(place); // as a store of rows does: what stood here and after it is replaced
                return layer(g, x, w, norm, frozen, *store, dropout);
            };
            x = checkpointed ? penelope::checkpoint(g, build) : build();
            g.expand(x);
        }
        return x;
    };
}

} // namespace

TEST_CASE("gradients are those of the plain graph") {
    const std::vector<Leaf> leaves  = network_leaves(5);
    const Result            plain   = gradients(leaves, network(false));
    const Result            rebuilt = gradients(leaves, network(true));
    CHECK(rebuilt.value == plain.value);
    for (size_t i = 0; i < leaves.size(); i++) {
        CAPTURE(i);
        CHECK(largest(plain.gradients[i]) > 0.0);
        CHECK(difference(rebuilt.gradients[i], plain.gradients[i]) < 1e-6);
    }
    CHECK(rebuilt.n_layer_applications == kLayers);
    CHECK(plain.n_layer_applications == kLayers);
    CHECK(rebuilt.n_nodes > plain.n_nodes);
}

TEST_CASE("dropout draws the same elements when it is built again") {
    const Dropout           dropout = {0.3f, 5, 2};
    const std::vector<Leaf> leaves  = network_leaves(5);
    const Result            plain   = gradients(leaves, network(false, &dropout));
    const Result            rebuilt = gradients(leaves, network(true, &dropout));
    CHECK(rebuilt.value == plain.value);
    for (size_t i = 0; i < leaves.size(); i++) {
        CAPTURE(i);
        CHECK(difference(rebuilt.gradients[i], plain.gradients[i]) < 1e-6);
    }
}

TEST_CASE("memory stays below that of the plain graph") {
    const std::vector<Leaf> leaves  = network_leaves(64);
    const Result            plain   = gradients(leaves, network(false));
    const Result            rebuilt = gradients(leaves, network(true));
    CHECK(rebuilt.n_bytes < plain.n_bytes / 2);
}

TEST_CASE("nothing is recorded when nothing is watched") {
    const std::vector<Leaf> leaves = network_leaves(5);
    const Result            result = gradients(leaves, network(true), std::vector<bool>(leaves.size(), false));
    for (const std::vector<float> & gradient : result.gradients) {
        CHECK(gradient.empty());
    }
}

TEST_CASE("one checkpoint inside another") {
    const Leaf x = leaf({7, 3}, 1), w = leaf({7, 7}, 2, 0.5);
    const auto build = [](bool nested) {
        return [nested](Graph & g, const std::vector<Node> & leaves, Fills &) {
            Linear square;
            square.weight    = leaves[1];
            const auto inner = [&g, square](Node a) { return penelope::tanh(g, penelope::linear(g, square, a)); };
            const auto outer = [&g, inner, nested](Node a) {
                Node b = nested ? penelope::checkpoint(g, [inner, a] { return inner(a); }) : inner(a);
                return penelope::mul(g, b, a);
            };
            Node y = leaves[0];
            for (int i = 0; i < 3; i++) {
                y = nested ? penelope::checkpoint(g, [outer, y] { return outer(y); }) : outer(y);
            }
            return y;
        };
    };
    const Result plain  = gradients({x, w}, build(false));
    const Result nested = gradients({x, w}, build(true));
    CHECK(nested.value == plain.value);
    CHECK(difference(nested.gradients[0], plain.gradients[0]) < 1e-6);
    CHECK(difference(nested.gradients[1], plain.gradients[1]) < 1e-6);
}
