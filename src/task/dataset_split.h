// Splits one file of examples into train, valid and test.
#pragma once

#include "task/task.h"

namespace penelope {

struct SplitRatios {
    double train, valid, test; // any scale
};

// "80,10,10": two or three numbers, train first. Throws Error(usage).
SplitRatios parse_split_ratios(const std::string & text);

// Random by seed. Examples with the same question (ignoring spaces and case) go to the same part, so that no test
// question is trained on. Throws Error(usage) if a requested part would be empty.
Dataset split_dataset(const std::vector<Example> & examples, const SplitRatios & shares, uint64_t seed);

} // namespace penelope
