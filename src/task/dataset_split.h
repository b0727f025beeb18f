// One file of examples divided into train, valid and test.
#pragma once

#include "task/task.h"

namespace penelope {

struct SplitRatios {
    double train, valid, test; // any scale
};

// "80,10,10": two or three numbers, train first. Throws Error(usage).
SplitRatios parse_split_ratios(const std::string & text);

// Drawn by the seed. Examples with the same question (spaces and capitals aside) go to the same part: a model must not be
// tested on what it was shown. Throws Error(usage) when a part that was asked for would be empty.
Dataset split_dataset(const std::vector<Example> & examples, const SplitRatios & shares, uint64_t seed);

} // namespace penelope
