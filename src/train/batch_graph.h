// The graph of one minibatch: its loss and, when parameters are to be trained, their gradients, which it leaves in the
// optimizer. A graph serves every minibatch of the same lengths and depth.
#pragma once

#include "graph/ops_loss.h"
#include "train/objective.h"
#include "train/optimizer.h"

#include <list>
#include <memory>
#include <string>

namespace penelope {

struct BatchLoss {
    // Over the target tokens that count, over those the memory should say and over those teachers write; 0: there are none. Of a
    // share of a minibatch, what it adds to the means of the whole.
    double             mean = 0, steps = 0, teacher = 0;
    double             distance = 0; // of the student from its teacher, likewise
    std::vector<float> tokens;       // of each target token, sequence after sequence
    std::vector<float> step_targets; // of each row that could say a token: step after step, sequence after sequence

    // What gradients are of.
    double total(const Minibatch & batch) const {
        return mean + batch.step_loss_weight * steps + teacher + batch.distill_weight * distance;
    }
};

class BatchGraph {
  public:
    // trained: whose parameters get gradients; null for the loss alone. Everything outlives the graph.
    // gather: among the ranks that share the minibatch; null when it is whole.
    BatchGraph(const Objective & objective, const Backbone & model, const Minibatch & like, const Backend & backend,
               const Optimizer * trained, const AllGatherFloats & gather = nullptr);

    // loss_scale multiplies the gradients.
    BatchLoss run(const Minibatch & batch, Workspace & workspace, float loss_scale = 1.0f);

    Graph & graph() { return graph_; }

    // What a minibatch has in common with those that can use its graph.
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

// Graphs kept for reuse, the least recently used ones dropped, in memory as large as the largest of them.
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
