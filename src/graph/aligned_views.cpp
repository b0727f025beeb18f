#include "graph/aligned_views.h"

#include <unordered_map>
#include <vector>

namespace penelope {

namespace {

// These take any place: they compute nothing, or are the copy itself.
bool takes_any_view(ggml_op op) {
    switch (op) {
        case GGML_OP_NONE:
        case GGML_OP_VIEW:
        case GGML_OP_RESHAPE:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
        case GGML_OP_DUP:
        case GGML_OP_CONT:
        case GGML_OP_CPY: return true;
        default: return false;
    }
}

// An operand that the operation writes to is no operand to copy.
bool needs_copy(const ggml_tensor * node, const ggml_tensor * source, size_t alignment) {
    return source && source->view_src && source->view_offs % alignment != 0 && source->view_src != node->view_src;
}

bool is_input(const ggml_tensor * view) {
    return (view->view_src->flags & GGML_TENSOR_FLAG_INPUT) != 0;
}

int count_copies(ggml_cgraph * graph, size_t alignment) {
    int n = 0;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        const ggml_tensor * node = ggml_graph_node(graph, i);
        for (const ggml_tensor * source : node->src) {
            n += !takes_any_view(node->op) && needs_copy(node, source, alignment);
        }
    }
    return n;
}

} // namespace

AlignedGraph with_aligned_views(ggml_cgraph * graph, size_t alignment) {
    const int n_copies = count_copies(graph, alignment);
    if (n_copies == 0) {
        return {};
    }
    const int        n_nodes = ggml_graph_n_nodes(graph);
    const size_t     size    = size_t(n_nodes + n_copies);
    ggml_init_params params{};
    // Sources that are no nodes of the graph are listed beside them, at most as many.
    params.mem_size = size_t(n_copies) * ggml_tensor_overhead() + ggml_graph_overhead_custom(2 * size, false);
    params.no_alloc = true;
    AlignedGraph aligned;
    aligned.ctx.reset(ggml_init(params));
    aligned.graph = ggml_new_graph_custom(aligned.ctx.get(), 2 * size, false);

    // What the host fills is the same for all that read it. Any other tensor may be written between two readers.
    std::unordered_map<ggml_tensor *, ggml_tensor *> copies_of_inputs;
    for (int i = 0; i < n_nodes; i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        for (ggml_tensor *& source : node->src) {
            if (takes_any_view(node->op) || !needs_copy(node, source, alignment)) {
                continue;
            }
            ggml_tensor * copy = is_input(source) ? copies_of_inputs[source] : nullptr;
            if (!copy) {
                copy = ggml_cont(aligned.ctx.get(), source);
                ggml_format_name(copy, "%s (aligned)", ggml_get_name(source));
                if (is_input(source)) {
                    copies_of_inputs[source] = copy;
                }
            }
            source = copy;
        }
        ggml_build_forward_expand(aligned.graph, node);
    }
    return aligned;
}

} // namespace penelope
