// Nodes in the order they are computed in, and the ggml graph of exactly these.
//
// A ggml graph is made for a number of nodes and ends the process at the first one too many. So the nodes are found and counted
// here, in ggml's own order and without its recursion, and the graph is made when all are known.
#pragma once

#include <ggml-cpp.h>

#include <unordered_set>
#include <vector>

namespace penelope {

struct OwnedGraph {
    ggml_context_ptr ctx; // of the list of nodes; their headers lie elsewhere
    ggml_cgraph *    graph = nullptr;
};

class NodeOrder {
  public:
    // The node, behind all it is made from, unless it is here already.
    void                               add(ggml_tensor * node);
    const std::vector<ggml_tensor *> & nodes() const { return nodes_; }
    size_t     n_tensors() const { return seen_.size(); } // with those that are computed from nothing
    OwnedGraph graph() const;
    size_t     graph_bytes() const; // of the graph that graph() would make

  private:
    std::vector<ggml_tensor *>              nodes_;
    std::unordered_set<const ggml_tensor *> seen_;
    std::vector<std::pair<ggml_tensor *, int>>
        stack_; // while adding: whose sources are looked at, and the next of them
};

} // namespace penelope
