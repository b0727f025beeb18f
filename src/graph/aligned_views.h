// The one place that decides whether a view may be handed to an operation.
//
// A device binds memory at multiples of an alignment (16 to 256 bytes); the kernels of ggml's GPU backends read a view that
// starts elsewhere from the wrong place or stop the process. So builders take views wherever they like, and a graph for such a
// device gets a copy, which starts where tensors start, in front of every operation that would read one at an odd place.
#pragma once

#include "graph/device.h"
#include "graph/node_order.h"
#include "graph/tensor_headers.h"

namespace penelope {

struct AlignedGraph {
    TensorHeaders copies;
    OwnedGraph    owned; // of null: the graph given is fine as it is

    size_t n_bytes() const { return copies.n_bytes() + (owned.ctx ? ggml_get_mem_size(owned.ctx.get()) : 0); }
};

// Another look at its operand: no kernel runs for it.
bool is_empty_op(const ggml_tensor * node);

// Whether a node may read this operand wherever it starts: the node computes nothing, is the copy itself or writes to the operand.
bool accepts_unaligned(const ggml_tensor * node, const ggml_tensor * source);

// A graph of the same nodes in the same order with the copies between them. Nothing may have memory yet.
AlignedGraph with_aligned_views(ggml_cgraph * graph, size_t alignment);

} // namespace penelope
