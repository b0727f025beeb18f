#include "train/depth_sampler.h"

#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace penelope {

namespace {

constexpr double kFewest = 0.1;  // weight of what is learned
constexpr double kNewest = 0.02; // share of one example in the running mean

} // namespace

void DepthRecord::add(double n_right, double n_supervised_targets) {
    if (n_supervised_targets > 0) {
        accuracy += (1 - std::pow(1 - kNewest, n_supervised_targets)) * (n_right / n_supervised_targets - accuracy);
    }
}

DepthSampler::DepthSampler(const std::vector<size_t> & depths, size_t batch_size, uint64_t seed)
    : batch_size_(batch_size), seed_(seed) {
    std::map<size_t, std::vector<size_t>> by_depth;
    for (size_t i = 0; i < depths.size(); i++) {
        by_depth[depths[i]].push_back(i);
    }
    for (auto & [depth, examples] : by_depth) {
        orders_.emplace_back(examples.size(), 1, Rng(seed, stream_id("depth order", depth)).u64());
        depths_.push_back(depth);
        examples_.push_back(std::move(examples));
    }
}

size_t DepthSampler::record_of(size_t n_gold_steps) const {
    return size_t(std::lower_bound(depths_.begin(), depths_.end(), n_gold_steps) - depths_.begin());
}

std::vector<size_t> DepthSampler::batch(int64_t update, std::vector<DepthRecord> & records) {
    std::vector<double> weights;
    for (size_t i = 0; i < depths_.size(); i++) {
        weights.push_back(double(examples_[i].size()) * std::max(kFewest, 1 - records[i].accuracy));
    }
    Rng                 rng(seed_, stream_id("depths", uint64_t(update)));
    std::vector<size_t> chosen;
    for (size_t i = 0; i < batch_size_; i++) {
        const size_t  depth = rng.choose_weighted(weights, 1).front();
        const int64_t turn  = ++records[depth].n_drawn;
        chosen.push_back(examples_[depth][orders_[depth].batch(turn).front()]);
    }
    return chosen;
}

} // namespace penelope
