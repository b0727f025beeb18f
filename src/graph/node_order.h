// Topological order of the nodes, like ggml_build_forward_expand but without a limit.
//
// A ggml_cgraph has a fixed capacity and aborts when it is exceeded. So nodes are collected here first, in ggml's order
// but without its recursion, and the ggml_cgraph is created when their number is known.
#pragma once

#include <ggml-cpp.h>

#include <unordered_set>
#include <vector>

namespace penelope {

struct OwnedGraph {
    ggml_context_ptr ctx; // owns the node list; the tensor structs are in TensorHeaders
    ggml_cgraph *    graph = nullptr;
};

class NodeOrder {
  public:
    // Appends the node after everything it depends on, unless it is already in the order.
    void                               add(ggml_tensor * node);
    const std::vector<ggml_tensor *> & nodes() const { return nodes_; }
    size_t                             n_tensors() const { return seen_.size(); } // nodes and leaves
    OwnedGraph                         graph() const;       // a ggml_cgraph of exactly these nodes
    size_t                             graph_bytes() const; // host memory of graph()

  private:
    std::vector<ggml_tensor *>                 nodes_;
    std::unordered_set<const ggml_tensor *>    seen_;
    std::vector<std::pair<ggml_tensor *, int>> stack_; // depth-first search: (tensor, index of its next source)
};

} // namespace penelope
