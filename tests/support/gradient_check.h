// Gradients of a function built from graph/ops.h: from the tape, and by central differences.
#pragma once

#include "base/rng.h"
#include "graph/graph.h"
#include "graph/tape.h"
#include "support/difference.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gradient_check {

using penelope::Backend;
using penelope::Graph;
using penelope::Node;
using penelope::Tape;

inline Backend & backend() {
    static Backend instance(penelope::find_device("CPU"), 2);
    return instance;
}

inline std::vector<float> random_values(int64_t n, uint64_t stream, double spread = 1.0) {
    penelope::Rng      rng(7, stream);
    std::vector<float> values(static_cast<size_t>(n));
    for (float & value : values) {
        value = float(spread * rng.normal());
    }
    return values;
}

// A tensor whose gradient is checked.
struct Leaf {
    std::vector<int64_t> shape;
    std::vector<float>   values;
};

inline Leaf leaf(std::vector<int64_t> shape, uint64_t stream, double spread = 1.0) {
    int64_t n = 1;
    for (int64_t extent : shape) {
        n *= extent;
    }
    return { shape, random_values(n, stream, spread) };
}

// What the function needs that is not differentiated: filled after the graph is allocated.
struct Fill {
    Node              node;
    std::vector<char> bytes;
};
using Fills = std::vector<Fill>;

template <typename T> void fill(Fills & fills, Node node, const std::vector<T> & values) {
    const char * data = reinterpret_cast<const char *>(values.data());
    fills.push_back({ node, std::vector<char>(data, data + values.size() * sizeof(T)) });
}

// Builds the result from the leaves.
using Build = std::function<Node(Graph & g, const std::vector<Node> & leaves, Fills & fills)>;

struct Result {
    std::vector<float>              value;
    std::vector<std::vector<float>> gradients; // one per leaf, empty where none arrived
    int                             n_nodes              = 0;
    size_t                          n_bytes              = 0;
    int                             n_layer_applications = 0;
};

// Value of the function and, when asked for, the gradients of sum(seed * value).
class Program {
  public:
    Program(const std::vector<Leaf> & leaves, const Build & build, bool differentiate,
            const std::vector<bool> & watched = {}, bool host_kernels = true)
        : graph_(&tape_) {
        tape_.set_host_kernels(host_kernels);
        for (size_t i = 0; i < leaves.size(); i++) {
            const std::vector<int64_t> & s = leaves[i].shape;
            nodes_.push_back(graph_.input("leaf." + std::to_string(i), GGML_TYPE_F32, s[0], s.size() > 1 ? s[1] : 1,
                                          s.size() > 2 ? s[2] : 1));
            if (watched.empty() || watched[i]) {
                tape_.watch(nodes_.back());
            }
        }
        result_ = build(graph_, nodes_, fills_);
        graph_.output(result_);
        if (differentiate) {
            seed_ = graph_.input("seed", GGML_TYPE_F32, result_->ne[0], result_->ne[1], result_->ne[2]);
            tape_.backward(graph_, result_, seed_);
            for (Node node : nodes_) {
                if (Node gradient = tape_.gradient(node)) {
                    graph_.output(gradient);
                }
            }
        }
        graph_.allocate(backend());
    }

    Result run(const std::vector<Leaf> & leaves, const std::vector<float> & seed) {
        for (size_t i = 0; i < leaves.size(); i++) {
            penelope::set_node(nodes_[i], leaves[i].values);
        }
        for (const Fill & item : fills_) {
            penelope::set_node(item.node, item.bytes.data(), item.bytes.size());
        }
        if (seed_) {
            penelope::set_node(seed_, seed);
        }
        graph_.compute(backend());
        Result result;
        result.value                = penelope::get_node(result_);
        result.n_nodes              = graph_.n_nodes();
        result.n_bytes              = graph_.n_bytes();
        result.n_layer_applications = graph_.n_layer_applications();
        if (seed_) {
            for (Node node : nodes_) {
                Node gradient = tape_.gradient(node);
                result.gradients.push_back(gradient ? penelope::get_node(gradient) : std::vector<float>{});
            }
        }
        return result;
    }

    int64_t n_results() const { return ggml_nelements(result_); }

  private:
    Tape              tape_;
    Graph             graph_;
    std::vector<Node> nodes_;
    Fills             fills_;
    Node              result_ = nullptr;
    Node              seed_   = nullptr;
};

// Largest difference relative to the largest of the expected values.
inline double relative_difference(const std::vector<float> & found, const std::vector<float> & expected) {
    return penelope::test::difference(found, expected).most / std::max(penelope::test::largest(expected), 1e-30);
}

inline double dot(const std::vector<float> & a, const std::vector<float> & b) {
    double sum = 0.0;
    for (size_t i = 0; i < a.size(); i++) {
        sum += double(a[i]) * b[i];
    }
    return sum;
}

inline Result gradients(const std::vector<Leaf> & leaves, const Build & build, const std::vector<bool> & watched = {},
                        bool host_kernels = true) {
    Program program(leaves, build, true, watched, host_kernels);
    return program.run(leaves, random_values(program.n_results(), 99));
}

// Checks every gradient element against five-point differences of the forward.
inline void check(const std::vector<Leaf> & leaves, const Build & build, double tolerance = 1e-3, double step = 2e-2) {
    Program                  forward(leaves, build, false);
    const std::vector<float> seed     = random_values(forward.n_results(), 99);
    const Result             found    = Program(leaves, build, true).run(leaves, seed);
    const Result             portable = Program(leaves, build, true, {}, false).run(leaves, seed);
    for (size_t l = 0; l < leaves.size(); l++) {
        std::vector<Leaf>  moved = leaves;
        std::vector<float> expected;
        for (size_t i = 0; i < leaves[l].values.size(); i++) {
            const auto at = [&](double delta) {
                moved[l].values[i] = float(leaves[l].values[i] + delta);
                const double value = dot(forward.run(moved, {}).value, seed);
                moved[l].values[i] = leaves[l].values[i];
                return value;
            };
            expected.push_back(
                float((8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step)));
        }
        CAPTURE(l);
        REQUIRE(found.gradients[l].size() == expected.size());
        CHECK(penelope::test::largest(expected) > 0.0);
        CHECK(relative_difference(found.gradients[l], expected) < tolerance);
        // What other devices would run.
        CHECK(relative_difference(portable.gradients[l], found.gradients[l]) < 1e-5);
    }
}

} // namespace gradient_check
