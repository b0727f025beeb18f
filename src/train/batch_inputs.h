// Inputs of a step's graph whose contents follow from the lengths of its sequences and their padding: positions, masks, row numbers;
// and those that follow from the examples themselves.
// A graph's memory is shared with others, so they are filled before every computation.
#pragma once

#include "model/row_inputs.h"
#include "train/minibatch.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

// What every rank says to all, in their order; called by all at the same place of the graph.
using AllGatherFloats = std::function<std::vector<std::vector<float>>(const std::vector<float> & mine)>;

class BatchInputs {
  public:
    // gather: null when the minibatch is whole. is_padded: others will have rows in front where this one has none.
    explicit BatchInputs(AllGatherFloats gather = nullptr, bool is_padded = false)
        : gather_(std::move(gather)), is_padded_(is_padded) {}
    const AllGatherFloats & gather() const { return gather_; }

    // Rows at these places, keys and values being nodes of the graph.
    RowInputs & rows(Graph & g, const std::string & name, std::vector<SeqRange> ranges);
    Node        index(Graph & g, const std::string & name, std::vector<int32_t> values);
    Node        matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1, std::vector<float> values);
    // The same, made anew from every minibatch.
    Node index(Graph & g, const std::string & name, int64_t n,
               std::function<std::vector<int32_t>(const Minibatch &)> values);
    Node matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1,
                std::function<std::vector<float>(const Minibatch &)> values);

    // Keys and values of the sequences, there until the graph is built, its backward included.
    SequenceNodes & kv() { return kv_; }

    void fill(Graph & g, const Minibatch & batch) const;

  private:
    struct RowsInput {
        std::unique_ptr<RowInputs> inputs;
        std::vector<SeqRange>      ranges;
    };
    template <typename T> using OfBatch = std::function<std::vector<T>(const Minibatch &)>;

    AllGatherFloats                                gather_;
    bool                                           is_padded_;
    SequenceNodes                                  kv_;
    std::vector<RowsInput>                         rows_;
    std::vector<std::pair<Node, OfBatch<int32_t>>> indices_;
    std::vector<std::pair<Node, OfBatch<float>>>   matrices_;
};

} // namespace penelope
