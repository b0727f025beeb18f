// Shared by the generators: checks options, draws test, valid and train from independent random streams, avoids
// duplicate questions across splits, and numbers the examples.
#pragma once

#include "base/error.h"
#include "base/rng.h"
#include "task/task.h"

#include <functional>

namespace penelope {

// The questions of a dataset so far, by hash.
class QuestionSet {
  public:
    QuestionSet(std::string (*normalize)(const std::string &), const std::unordered_set<std::string> & excluded)
        : normalize_(normalize), hashes_(excluded) {}

    // Returns false if the question, after normalization, is already in the set.
    bool add(const std::string & question);

  private:
    std::string (*normalize_)(const std::string &);
    std::unordered_set<std::string> hashes_;
};

struct SplitRequest {
    std::string task;
    std::string split; // "train", "valid", "test"
    size_t      n;
    DepthRange  depth;
};

// Makes the n examples of a split, ids left empty.
using FillSplit = std::function<std::vector<Example>(const SplitRequest & request, QuestionSet & seen, Rng & rng)>;

// Checks sizes, depth ranges (within `possible`) and options the task does not have, then fills test, valid and train
// in this order, each from its own stream of the seed, and numbers the examples TASK-SPLIT-INDEX. A split of size 0 is
// empty.
Dataset generate_splits(const std::string & task, const DatasetOptions & options, DepthRange possible,
                        std::string (*normalize)(const std::string &), const FillSplit & fill);

// Draws until there are n distinct questions. Throws Error(usage) when no new ones are found.
std::vector<Example> fill_by_drawing(const SplitRequest & request, QuestionSet & seen,
                                     const std::function<Example(size_t index)> & draw);

// A depth of the range, uniformly.
int draw_depth(const DepthRange & range, Rng & rng);

// Error for a request with more examples than distinct questions.
Error too_few_questions(const SplitRequest & request, const std::string & where);

} // namespace penelope
