#include "graph/aligned_views.h"

#include <unordered_map>
#include <vector>

namespace penelope {

namespace {

bool needs_copy(const ggml_tensor * node, const ggml_tensor * source, size_t alignment) {
    return source && source->view_src && source->view_offs % alignment != 0 && !accepts_unaligned(node, source);
}

bool is_input(const ggml_tensor * view) {
    return (view->view_src->flags & GGML_TENSOR_FLAG_INPUT) != 0;
}

} // namespace

bool is_empty_op(const ggml_tensor * node) {
    switch (node->op) {
        case GGML_OP_NONE:
        case GGML_OP_VIEW:
        case GGML_OP_RESHAPE:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE: return true;
        default: return false;
    }
}

bool accepts_unaligned(const ggml_tensor * node, const ggml_tensor * source) {
    if (is_empty_op(node)) {
        return true;
    }
    switch (node->op) {
        case GGML_OP_DUP:
        case GGML_OP_CONT:
        case GGML_OP_CPY: return true;
        default: return source->view_src && source->view_src == node->view_src;
    }
}

AlignedGraph with_aligned_views(ggml_cgraph * graph, size_t alignment) {
    AlignedGraph aligned;
    NodeOrder    order;
    // An input does not change while the graph runs, so all readers share one copy. Other tensors may be written in
    // between.
    std::unordered_map<ggml_tensor *, ggml_tensor *> copies_of_inputs;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        for (ggml_tensor *& source : node->src) {
            if (!needs_copy(node, source, alignment)) {
                continue;
            }
            ggml_tensor * copy = is_input(source) ? copies_of_inputs[source] : nullptr;
            if (!copy) {
                copy = ggml_cont(aligned.copies.ctx(), source);
                ggml_format_name(copy, "%s (aligned)", ggml_get_name(source));
                if (is_input(source)) {
                    copies_of_inputs[source] = copy;
                }
            }
            source = copy;
        }
        order.add(node);
    }
    if (aligned.copies.n_bytes() > 0) {
        aligned.owned = order.graph();
    }
    return aligned;
}

} // namespace penelope
