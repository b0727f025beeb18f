// Copies views that start at an unaligned address. GPU backends only.
//
// GPU backends bind buffers at a multiple of an alignment (16 to 256 bytes). Their kernels read a view that starts
// anywhere else at the wrong address, or abort. Builders create views freely; this pass then inserts an aligned copy
// (ggml_cont) in front of every operation that would read an unaligned view.
#pragma once

#include "graph/device.h"
#include "graph/node_order.h"
#include "graph/tensor_headers.h"

namespace penelope {

struct AlignedGraph {
    TensorHeaders copies;
    OwnedGraph    owned; // owned.graph is null when no copy was needed: use the original graph

    size_t n_bytes() const { return copies.n_bytes() + (owned.ctx ? ggml_get_mem_size(owned.ctx.get()) : 0); }
};

// True for nodes without a kernel: views, reshapes, permutations.
bool is_empty_op(const ggml_tensor * node);

// Whether `node` may read `source` at any address: it runs no kernel, is a copy itself, or writes `source` in place.
bool accepts_unaligned(const ggml_tensor * node, const ggml_tensor * source);

// The same nodes in the same order with the copies in between. Call before any tensor has an address.
AlignedGraph with_aligned_views(ggml_cgraph * graph, size_t alignment);

} // namespace penelope
