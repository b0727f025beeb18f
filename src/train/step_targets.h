// What the memory should say at each latent step, for a loss on every step and for teacher forcing: the results of the
// gold steps as tokens, one for each row of the memory, from row 0 on.
#pragma once

#include "task/task.h"
#include "text/tokenizer.h"

#include <cstdint>
#include <vector>

namespace penelope {

class StepTargets {
  public:
    // n_rows: of the memory. Longer results are cut off.
    StepTargets(const Task & task, const Tokenizer & tokenizer, int n_rows)
        : task_(task), tokenizer_(tokenizer), n_rows_(n_rows) {}

    // For teacher forcing. The chain begins with what its first step starts from: latent step 1 says the start, step t
    // the result of gold step t - 1. All results take the rows of the longest one in `examples`; shorter ones end with
    // end tokens, so that what stands in the memory is never a mixture of two results.
    void begin_with_start(const std::vector<Example> & examples);

    // Tokens that steps 1 .. n_steps should say. After the last gold step the result stays the final one. No step of an
    // example without results says anything.
    std::vector<std::vector<int32_t>> tokens(const Example & example, int n_steps) const;

    // Latent steps until the memory holds the result of the last gold step.
    size_t n_needed(const Example & example) const { return example.steps.size() + (with_start_ ? 1 : 0); }

    // The chain as one text, as a model writes it that goes from result to result: start, results, the answer unless it
    // is the last result. Empty without results.
    std::vector<int32_t> chain(const Example & example) const;

  private:
    std::vector<std::string>          texts(const Example & example) const;
    std::vector<std::vector<int32_t>> results(const Example & example) const;

    const Task & task_;
    Tokenizer    tokenizer_;
    int          n_rows_;
    bool         with_start_ = false;
    size_t       width_      = 0; // tokens of every result, with end tokens; 0: each as many as it has
};

} // namespace penelope
