#include "train/batch_sampler.h"

#include "base/rng.h"

#include <algorithm>
#include <numeric>

namespace penelope {

BatchSampler::BatchSampler(size_t n_examples, size_t batch_size, uint64_t seed)
    : n_examples_(n_examples), batch_size_(batch_size), seed_(seed), order_(n_examples) {}

size_t BatchSampler::at(uint64_t position) {
    const uint64_t epoch = position / n_examples_;
    if (epoch != epoch_) {
        std::iota(order_.begin(), order_.end(), size_t(0));
        Rng(seed_, stream_id("shuffle", epoch)).shuffle(order_);
        epoch_ = epoch;
    }
    return order_[position % n_examples_];
}

std::vector<size_t> BatchSampler::batch(int64_t update) {
    std::vector<size_t> examples;
    const uint64_t      first = uint64_t(update - 1) * batch_size_;
    for (uint64_t i = 0; i < batch_size_; i++) {
        examples.push_back(at(first + i));
    }
    return examples;
}

double BatchSampler::epochs(int64_t update) const {
    return double(update) * double(batch_size_) / double(n_examples_);
}

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
