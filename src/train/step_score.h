// What the losses of a minibatch say about right and wrong, at no cost: a token counts as right when it is more likely
// than all others together, which greedy decoding then chooses (it may choose it below that too: these are lower
// bounds).
#pragma once

#include "train/batch_graph.h"
#include "train/minibatch.h"

#include <vector>

namespace penelope {

struct RightCount {
    double n_right = 0, n_supervised_targets = 0;
};

// Whether each example's whole target is right; those whose target does not count are left out (n_supervised_targets
// 0).
std::vector<RightCount> right_answers(const Minibatch & batch, const BatchLoss & loss);

// What each latent step says, over the tokens of the examples that run on their own memory from the first step on.
std::vector<RightCount> right_steps(const Minibatch & batch, const BatchLoss & loss);

// Right and asked of every depth record and every latent step, as the flat numbers that ranks add up.
class RightTable {
  public:
    RightTable() = default;
    RightTable(size_t n_depths, const Minibatch & batch);
    // Read again from position `first` of the sums.
    RightTable(size_t n_depths, const Minibatch & batch, const std::vector<double> & sums, size_t first);

    static size_t n_values(size_t n_depths, const Minibatch & batch);

    void add_answer(size_t depth, RightCount count);
    void add_steps(const std::vector<RightCount> & counts);
    void append_to(std::vector<double> & values) const;

    const std::vector<RightCount> & answers() const { return answers_; } // by depth record
    std::vector<double>             shares_of_steps() const;             // by latent step; -1: nobody was asked

  private:
    std::vector<RightCount> answers_, steps_;
};

} // namespace penelope
