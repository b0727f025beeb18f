// A curriculum that steers itself: which examples an update takes, by how well their number of gold steps is answered
// so far.
//
// An example with d gold steps is drawn with weight max(0.1, 1 - accuracy(d)): all depths are mixed from the first
// update to the last, those that are not learned yet come up to ten times as often as those that are, and there is no
// threshold to choose. accuracy(d) is a running mean over the examples that were trained on, each scored before the
// update that learns from it.
#pragma once

#include "train/batch_sampler.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penelope {

// What is known about the examples with one number of gold steps.
struct DepthRecord {
    double  accuracy = 0; // running mean of right answers; nothing is right at first
    int64_t n_drawn  = 0; // examples drawn so far: where their endless row of epochs stands

    void add(double n_right, double n_supervised_targets); // of one update
};

class DepthSampler {
  public:
    // depths: gold steps of every example. The draws follow from seed, update and records alone.
    DepthSampler(const std::vector<size_t> & depths, size_t batch_size, uint64_t seed);

    const std::vector<size_t> & depths() const { return depths_; } // that occur, ascending; one record each
    size_t                      record_of(size_t n_gold_steps) const;

    // The examples of an update; counts them in the records.
    std::vector<size_t> batch(int64_t update, std::vector<DepthRecord> & records);

  private:
    size_t                           batch_size_;
    uint64_t                         seed_;
    std::vector<size_t>              depths_;
    std::vector<std::vector<size_t>> examples_; // of each depth
    std::vector<BatchSampler>        orders_;   // their shuffles, one example a turn
};

} // namespace penelope
