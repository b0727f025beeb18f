// The training graph of one minibatch: forward pass, loss and, for trainable parameters, the backward pass, which
// writes the gradients into the optimizer. A graph is reused for every minibatch with the same lengths and K.
#pragma once

#include "graph/ops_loss.h"
#include "train/objective.h"
#include "train/optimizer.h"

#include <list>
#include <memory>
#include <string>

namespace penelope {

struct BatchLoss {
    // Mean cross-entropy of the supervised target tokens, the step targets and the teacher tokens; 0: there are none.
    // For a shard of a minibatch: its contribution to the means of the whole.
    double             mean = 0, steps = 0, teacher = 0;
    double             distance = 0; // CODI: distillation loss
    std::vector<float> tokens;       // loss of each target token, sequence by sequence
    std::vector<float> step_targets; // loss of each step target: by step, then sequence

    // The loss whose gradients are computed.
    double total(const Minibatch & batch) const {
        return mean + batch.step_loss_weight * steps + teacher + batch.distill_weight * distance;
    }
};

class BatchGraph {
  public:
    // trained: the parameters that get gradients; null: forward pass only. All arguments must outlive the graph.
    // gather: all-gather among the ranks that share the minibatch; null: the minibatch is not sharded.
    BatchGraph(const Objective & objective, const Backbone & model, const Minibatch & like, const Backend & backend,
               const Optimizer * trained, const AllGatherFloats & gather = nullptr);

    // loss_scale multiplies the gradients.
    BatchLoss run(const Minibatch & batch, Workspace & workspace, float loss_scale = 1.0f);

    Graph & graph() { return graph_; }

    // Cache key: minibatches with equal keys can use the same graph.
    static std::string key(const Minibatch & batch);

  private:
    const Objective & objective_;
    const Backend &   backend_;
    Tape              tape_;
    Graph             graph_;
    BatchInputs       inputs_;
    Node              ids_     = nullptr; // I32 [n_rows]
    Node              targets_ = nullptr; // I32 [n_targets + n_step_targets]
    Node              weights_ = nullptr; // [n_targets + n_step_targets]
    CrossEntropy      loss_{};
    Node              distance_ = nullptr, distill_weight_ = nullptr; // [1]
};

// LRU cache of graphs. They share one workspace, which is as large as the largest graph needs.
class BatchGraphCache {
  public:
    BatchGraphCache(const Objective & objective, const Backbone & model, const Backend & backend,
                    const Optimizer * trained, AllGatherFloats gather = nullptr)
        : objective_(objective), model_(model), backend_(backend), trained_(trained), gather_(std::move(gather)),
          workspace_(backend) {}

    BatchLoss run(const Minibatch & batch, float loss_scale = 1.0f);

    size_t n_bytes() const { return workspace_.bytes(); }
    int    n_nodes() const { return n_nodes_; } // of the graph run last

  private:
    struct CacheEntry {
        std::string                 key;
        std::unique_ptr<BatchGraph> graph;
    };
    BatchGraph & find(const Minibatch & batch);

    const Objective &     objective_;
    const Backbone &      model_;
    const Backend &       backend_;
    const Optimizer *     trained_;
    AllGatherFloats       gather_;
    Workspace             workspace_;
    std::list<CacheEntry> graphs_; // most recently used first
    int                   n_nodes_ = 0;
};

} // namespace penelope
