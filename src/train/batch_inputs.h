// Input tensors of a training graph: positions, masks and row indices, which follow from sequence lengths and padding,
// and inputs computed from the examples. Graphs share their memory, so all inputs are set again before every run.
#pragma once

#include "model/row_inputs.h"
#include "train/minibatch.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

// All-gather: returns the values of every rank in rank order. All ranks call it at the same point of the graph.
using AllGatherFloats = std::function<std::vector<std::vector<float>>(const std::vector<float> & mine)>;

class BatchInputs {
  public:
    // config: of the model; must outlive this object. gather: null when the minibatch is not sharded. is_padded: later
    // minibatches may have left padding where this one has none.
    BatchInputs(const ModelConfig & config, AllGatherFloats gather, bool is_padded)
        : config_(config), gather_(std::move(gather)), is_padded_(is_padded) {}
    const AllGatherFloats & gather() const { return gather_; }

    // Inputs for rows at these positions; their K and V are nodes of this graph instead of a cache.
    RowInputs & rows(Graph & g, const std::string & name, std::vector<SeqRange> ranges);
    Node        index(Graph & g, const std::string & name, std::vector<int32_t> values);
    Node        matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1, std::vector<float> values);
    // The same, recomputed from every minibatch.
    Node index(Graph & g, const std::string & name, int64_t n,
               std::function<std::vector<int32_t>(const Minibatch &)> values);
    Node matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1,
                std::function<std::vector<float>(const Minibatch &)> values);

    // K and V of the sequences; needed until the graph is built, backward pass included.
    SequenceNodes & kv() { return kv_; }

    void fill(Graph & g, const Minibatch & batch) const;

  private:
    struct RowsInput {
        std::unique_ptr<RowInputs> inputs;
        std::vector<SeqRange>      ranges;
    };
    template <typename T> using OfBatch = std::function<std::vector<T>(const Minibatch &)>;

    const ModelConfig &                            config_;
    AllGatherFloats                                gather_;
    bool                                           is_padded_;
    SequenceNodes                                  kv_;
    std::vector<RowsInput>                         rows_;
    std::vector<std::pair<Node, OfBatch<int32_t>>> indices_;
    std::vector<std::pair<Node, OfBatch<float>>>   matrices_;
};

} // namespace penelope
