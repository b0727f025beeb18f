// Where each tensor of a graph lies in one buffer: tensors whose lives do not overlap share memory. ggml has such a planner
// too, but it stops the process when memory falls into more than 256 gaps, which the graph of a training step does.
//
// Backends fuse chains of nodes (a product and the bias added to it, a norm and its weight, a gate and its factor) into one
// kernel, which reads what the first node reads while it writes what the last one writes. The plan keeps that safe: an
// intermediate result that nobody else reads gives its place to the next node of the chain, and it was placed while all
// operands of the first node were alive; so the last result lies on none of them, or element for element on one.
#pragma once

#include "ggml-backend.h"

#include <cstddef>
#include <vector>

namespace penelope {

class MemoryPlan {
  public:
    MemoryPlan() = default;
    // Plans for everything in the graph that has no memory yet. `inputs` are filled before the graph runs and lie apart from
    // each other; outputs (ggml_set_output) keep their memory until the end.
    MemoryPlan(ggml_cgraph * graph, const std::vector<ggml_tensor *> & inputs, ggml_backend_buffer_type_t type);

    size_t n_bytes() const { return n_bytes_; }

    // Gives every planned tensor its address in a buffer of at least n_bytes(). None of them may have one.
    void assign_addresses(ggml_backend_buffer_t buffer) const {
        assign_tensors(buffer);
        assign_views();
    }
    // The same in two steps: tensors with memory of their own, then views.
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
