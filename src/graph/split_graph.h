// A graph cut into stages, each a stretch of nodes that one device computes in one go.
//
// A cut lies where the device changes and where the host has something to do in between. What a node reads from another device
// arrives as a tensor of its own on the device of the reader, copied when the stage that makes it is done. Inputs of the host
// go to every device that reads them. What a stage reads from an earlier one of its device it reads through a stand-in, a
// tensor without a history at the same address: a stage is then a whole graph by itself, and a remote device is told of its
// own nodes alone.
#pragma once

#include "graph/aligned_views.h"
#include "graph/memory_plan.h"

#include <functional>
#include <vector>

namespace penelope {

// Work of the host after `after` is computed and before any node that was added later.
struct HostCallback {
    ggml_tensor *         after;
    std::function<void()> work; // null: only to look whether to go on
};

struct DeviceCopy {
    ggml_tensor * from;
    ggml_tensor * to;
};

struct GraphStage {
    size_t                             device_id; // the device, by its number in the backend
    ggml_cgraph *                      graph;
    std::vector<DeviceCopy>            device_copies; // once it is computed
    std::vector<std::function<void()>> callbacks;     // likewise
};

// What one device gets of the graph.
struct DeviceGraph {
    struct Input {
        ggml_tensor * of; // of the graph
        ggml_tensor * local;
    };
    std::vector<Input>         inputs; // lie first in the plan, in order
    std::vector<ggml_tensor *> received;
    std::vector<DeviceCopy>    proxies; // `to` lies where `from` lies
    std::vector<ggml_tensor *> views;   // among the stand-ins
    AlignedGraph               aligned;
    MemoryPlan                 plan;

    void assign_addresses(ggml_backend_buffer_t buffer) const;
};

class SplitGraph {
  public:
    SplitGraph() = default;
    // graph: whose nodes lie on devices `preferred_device` (one number a node) unless a weight they read or a tensor they are a view of lies
    // elsewhere. Nothing of the graph may have memory; its nodes are changed.
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
