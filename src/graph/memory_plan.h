// Memory planner: gives each tensor of a graph an offset in one buffer. Tensors whose live ranges do not overlap share
// memory. Replaces ggml_gallocr, which aborts when its free list exceeds 256 blocks; a training step exceeds that.
//
// Backends fuse chains of nodes (product + bias, norm + weight, gate + factor) into one kernel, which reads the inputs
// of the first node while it writes the output of the last. That stays safe here: an intermediate result with a single
// reader is reused in place by the next node of the chain, and it was allocated while all inputs of the first node were
// live. So the last result overlaps none of these inputs, or exactly one of them element by element.
#pragma once

#include "ggml-backend.h"

#include <cstddef>
#include <vector>

namespace penelope {

class MemoryPlan {
  public:
    MemoryPlan() = default;
    // Plans every tensor of the graph that has no address yet. `inputs` get memory of their own at the start of the
    // buffer; outputs (ggml_set_output) stay allocated until the end.
    MemoryPlan(ggml_cgraph * graph, const std::vector<ggml_tensor *> & inputs, ggml_backend_buffer_type_t type);

    size_t n_bytes() const { return n_bytes_; }

    // Sets the address of every planned tensor in a buffer of at least n_bytes(). None of them may have an address.
    void assign_addresses(ggml_backend_buffer_t buffer) const {
        assign_tensors(buffer);
        assign_views();
    }
    // The same in two steps: first tensors with memory of their own, then views.
    void assign_tensors(ggml_backend_buffer_t buffer) const;
    void assign_views() const;

  private:
    struct Allocation {
        ggml_tensor * tensor;
        size_t        offset;
    };
    std::vector<Allocation>    allocations_;
    std::vector<ggml_tensor *> views_;
    size_t                     n_bytes_ = 0;
};

} // namespace penelope
