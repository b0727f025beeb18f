// Inputs of a step's graph whose contents follow from the lengths of its sequences alone: positions, masks, row numbers.
// A graph's memory is shared with others, so they are filled before every computation.
#pragma once

#include "model/row_inputs.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

class StepInputs {
  public:
    // Rows at these places, keys and values being nodes of the graph.
    RowInputs & rows(Graph & g, const std::string & name, std::vector<Stretch> stretches);
    Node        index(Graph & g, const std::string & name, std::vector<int32_t> values);
    Node        matrix(Graph & g, const std::string & name, int64_t ne0, int64_t ne1, std::vector<float> values);

    // Keys and values of the sequences, there until the graph is built, its backward included.
    SequenceNodes & kv() { return kv_; }

    void fill(Graph & g) const;

  private:
    struct RowsInput {
        std::unique_ptr<RowInputs> inputs;
        std::vector<Stretch>       stretches;
    };
    SequenceNodes                                      kv_;
    std::vector<RowsInput>                             rows_;
    std::vector<std::pair<Node, std::vector<int32_t>>> indices_;
    std::vector<std::pair<Node, std::vector<float>>>   matrices_;
};

} // namespace penelope
