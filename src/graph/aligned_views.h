// The one place that decides whether a view may be handed to an operation.
//
// A device binds memory at multiples of an alignment (16 to 256 bytes); the kernels of ggml's GPU backends read a view that
// starts elsewhere from the wrong place or stop the process. So builders take views wherever they like, and a graph for such a
// device gets a copy, which starts where tensors start, in front of every operation that would read one at an odd place.
#pragma once

#include "graph/device.h"

namespace penelope {

struct AlignedGraph {
    ggml_context_ptr ctx;             // of the copies and the graph
    ggml_cgraph *    graph = nullptr; // null: the graph given is fine as it is
};

// A graph of the same nodes in the same order with the copies between them. Nothing may have memory yet.
AlignedGraph with_aligned_views(ggml_cgraph * graph, size_t alignment);

} // namespace penelope
