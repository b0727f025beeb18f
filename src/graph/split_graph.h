// Splits a graph into stages, as ggml_backend_sched splits a graph by backend. Each stage is a ggml_cgraph that one
// device computes in one call. Used when the model is spread over several devices, or when the host must run code in
// between.
//
// A new stage begins where the device changes and after a host callback. Three kinds of tensors connect the stages:
//   - a host input is duplicated on every device that reads it;
//   - a result read on another device is copied there when its stage is done (DeviceCopy);
//   - a result of an earlier stage of the same device is read through a proxy tensor: a leaf with the same address and
//     no sources. A stage is then a complete graph by itself, and an RPC server receives only its own nodes.
#pragma once

#include "graph/aligned_views.h"
#include "graph/memory_plan.h"

#include <functional>
#include <vector>

namespace penelope {

// Code the host runs after node `after` is computed and before any node that was expanded later.
struct HostCallback {
    ggml_tensor *         after;
    std::function<void()> work; // null: an abort point, which only splits the graph
};

struct DeviceCopy {
    ggml_tensor * from;
    ggml_tensor * to;
};

struct GraphStage {
    size_t                             device_id; // index of the device in the Backend
    ggml_cgraph *                      graph;
    std::vector<DeviceCopy>            device_copies; // done after the stage
    std::vector<std::function<void()>> callbacks;     // called after the copies
};

// One device's share of the graph.
struct DeviceGraph {
    struct Input {
        ggml_tensor * of; // the input of the whole graph; `local` is its copy on this device
        ggml_tensor * local;
    };
    std::vector<Input>         inputs;   // at the start of the buffer, in order
    std::vector<ggml_tensor *> received; // targets of copies from other devices
    std::vector<DeviceCopy>    proxies;  // proxy `to` has the address of `from`
    std::vector<ggml_tensor *> views;    // proxies that are views
    AlignedGraph               aligned;
    MemoryPlan                 plan;

    void assign_addresses(ggml_backend_buffer_t buffer) const;
};

class SplitGraph {
  public:
    SplitGraph() = default;
    // preferred_device: one device index per node. A node runs elsewhere if a weight it reads, or the tensor it is a
    // view of, is stored on another device. No tensor of the graph may have an address yet. The sources of nodes are
    // replaced.
    SplitGraph(ggml_cgraph * graph, const std::vector<int> & preferred_device,
               const std::vector<ggml_tensor *> & inputs, const std::vector<HostCallback> & callbacks,
               const Backend & backend);

    const std::vector<DeviceGraph> & device_graphs() const { return devices_; }
    const std::vector<GraphStage> &  stages() const { return stages_; }
    const std::vector<DeviceCopy> &  initial_copies() const { return initial_copies_; } // before the first stage
    void                             clear_addresses();
    size_t                           header_bytes() const;

  private:
    friend class GraphSplitter;
    TensorHeaders            headers_;
    std::vector<OwnedGraph>  graphs_;
    std::vector<DeviceGraph> devices_;
    std::vector<GraphStage>  stages_;
    std::vector<DeviceCopy>  initial_copies_;
};

} // namespace penelope
