#include "graph/node_order.h"

#include <algorithm>

namespace penelope {

void NodeOrder::add(ggml_tensor * node) {
    const auto enter = [this](ggml_tensor * one) {
        if (one && seen_.insert(one).second) {
            stack_.push_back({ one, 0 });
        }
    };
    enter(node);
    while (!stack_.empty()) {
        auto & [at, next] = stack_.back();
        if (next < GGML_MAX_SRC) {
            enter(at->src[next++]);
            continue;
        }
        // GGML_OP_NONE marks a leaf, except for parameters
        if (at->op != GGML_OP_NONE || (at->flags & GGML_TENSOR_FLAG_PARAM)) {
            nodes_.push_back(at);
        }
        stack_.pop_back();
    }
}

// A ggml_cgraph has one array for nodes and one for leaves, both of this capacity.
size_t NodeOrder::graph_bytes() const {
    return ggml_graph_overhead_custom(std::max<size_t>(n_tensors(), 1), false);
}

OwnedGraph NodeOrder::graph() const {
    ggml_init_params params{};
    params.mem_size = graph_bytes();
    params.no_alloc = true;
    OwnedGraph made;
    made.ctx.reset(ggml_init(params));
    made.graph = ggml_new_graph_custom(made.ctx.get(), std::max<size_t>(n_tensors(), 1), false);
    for (ggml_tensor * node : nodes_) {
        ggml_build_forward_expand(made.graph, node);
    }
    return made;
}

} // namespace penelope
