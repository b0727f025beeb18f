#include "train/batch_split.h"

#include <algorithm>
#include <numeric>

namespace penelope {

std::vector<std::vector<size_t>> balance_shards(const std::vector<size_t> & costs, size_t n_shards) {
    std::vector<size_t> order(costs.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs[a] > costs[b]; });

    std::vector<std::vector<size_t>> parts(n_shards);
    std::vector<size_t>              sums(n_shards, 0);
    for (size_t i : order) {
        const size_t least = size_t(std::min_element(sums.begin(), sums.end()) - sums.begin());
        parts[least].push_back(i);
        sums[least] += costs[i];
    }
    for (std::vector<size_t> & part : parts) {
        std::sort(part.begin(), part.end());
    }
    return parts;
}

} // namespace penelope
