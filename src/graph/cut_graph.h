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
struct Pause {
    ggml_tensor *         after;
    std::function<void()> work; // null: only to look whether to go on
};

struct Crossing {
    ggml_tensor * from;
    ggml_tensor * to;
};

struct GraphStage {
    size_t                             part; // the device, by its number in the backend
    ggml_cgraph *                      graph;
    std::vector<Crossing>              crossings; // once it is computed
    std::vector<std::function<void()>> pauses;    // likewise
};

// What one device gets of the graph.
struct GraphPart {
    struct Input {
        ggml_tensor * of; // of the graph
        ggml_tensor * local;
    };
    std::vector<Input>         inputs; // lie first in the plan, in order
    std::vector<ggml_tensor *> arrivals;
    std::vector<Crossing>      stand_ins; // `to` lies where `from` lies
    std::vector<ggml_tensor *> views;     // among the stand-ins
    AlignedGraph               aligned;
    MemoryPlan                 plan;

    void place(ggml_backend_buffer_t buffer) const;
};

class CutGraph {
  public:
    CutGraph() = default;
    // graph: whose nodes lie on devices `wanted` (one number a node) unless a weight they read or a tensor they are a view of lies
    // elsewhere. Nothing of the graph may have memory; its nodes are changed.
    CutGraph(ggml_cgraph * graph, const std::vector<int> & wanted, const std::vector<ggml_tensor *> & inputs,
             const std::vector<Pause> & pauses, const Backend & backend);

    const std::vector<GraphPart> &  parts() const { return parts_; }
    const std::vector<GraphStage> & stages() const { return stages_; }
    const std::vector<Crossing> &   first_crossings() const { return first_crossings_; } // before the first stage
    void                            forget_places();
    size_t                          header_bytes() const;

  private:
    friend class Cutter;
    TensorHeaders             headers_;
    std::vector<CountedGraph> graphs_;
    std::vector<GraphPart>    parts_;
    std::vector<GraphStage>   stages_;
    std::vector<Crossing>     first_crossings_;
};

} // namespace penelope
