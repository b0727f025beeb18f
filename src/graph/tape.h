// Reverse mode over a ggml graph. Each operation of graph/ops.h that touches something watched records a rule: given the
// gradient of its result, the rule adds nodes for the gradients of its inputs. backward() runs the rules last to first.
//
// Gradients have the shape of their tensor, are F32 and contiguous. A tensor used several times gets the sum.
#pragma once

#include "graph/graph.h"

#include <functional>
#include <unordered_map>
#include <vector>

namespace penelope {

class Tape {
  public:
    using Rule = std::function<void(Graph & graph, Node gradient)>;

    // Declares a leaf (weight, input) whose gradient is wanted.
    void watch(Node leaf);

    // True when `node` is watched or computed from something watched; null is never wanted.
    bool wants(const ggml_tensor * node) const;

    // Says that `result` was computed from watched things and how its gradient goes on. Called by operations only.
    void record(Node result, Rule rule);

    // Adds `gradient` to what `node` has gathered so far; ignored when node is not wanted.
    void accumulate(Graph & graph, Node node, Node gradient);

    // Seeds `result` with `gradient` and builds all gradient nodes into the graph, expanding as it goes.
    void backward(Graph & graph, Node result, Node gradient);

    // What backward() found for a watched leaf; null when nothing reached it.
    Node gradient(const ggml_tensor * node) const;

  private:
    struct Entry {
        Node result;
        Rule rule;
    };
    std::vector<Entry>                             entries_;
    std::vector<Node>                              leaves_;
    std::unordered_map<const ggml_tensor *, bool>  wanted_;
    std::unordered_map<const ggml_tensor *, Node>  gradients_;
};

} // namespace penelope
