// Which examples of a minibatch each rank works on.
#pragma once

#include <cstddef>
#include <vector>

namespace penelope {

// costs: the work of each example, at least n_shards of them. Gives n_shards lists of their numbers, none empty, each ascending,
// with sums as even as taking the largest first makes them. It follows from the costs alone.
std::vector<std::vector<size_t>> balance_shards(const std::vector<size_t> & costs, size_t n_shards);

} // namespace penelope
