// Order of the training examples: shuffled every epoch, then cut into minibatches across epoch boundaries. The order
// depends on the seed alone, so a resumed run only needs the number of its update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penelope {

class BatchSampler {
  public:
    BatchSampler(size_t n_examples, size_t batch_size, uint64_t seed);

    // Example indices of the minibatch of update 1, 2, ...
    std::vector<size_t> batch(int64_t update);

    double epochs(int64_t update) const; // completed after this update

  private:
    size_t at(uint64_t position);

    size_t              n_examples_, batch_size_;
    uint64_t            seed_;
    uint64_t            epoch_ = ~uint64_t(0); // whose order is in order_
    std::vector<size_t> order_;
};

// Splits a minibatch over the ranks. costs[i] is the work of example i; there are at least n_shards examples. Returns
// n_shards ascending lists of example indices, none empty, with sums of cost balanced greedily (largest first). The
// result depends on the costs alone, so every rank computes the same split.
std::vector<std::vector<size_t>> balance_shards(const std::vector<size_t> & costs, size_t n_shards);

} // namespace penelope
