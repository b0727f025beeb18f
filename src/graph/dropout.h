// Dropout with masks that are the same on every device and independent of the rest of the batch.
//
// A table ("bank") of kDropoutPatterns masks of kDropoutBlock elements is drawn once from the seed: 0 for a dropped
// element, 1 / (1 - rate) for one that stays. Each block of 64 activations is multiplied by one of these masks, chosen
// by hashing (seed, step, number of the dropout in the graph, example, position). The CPU reads the table in a custom
// kernel; GPUs gather rows of the same table.
#pragma once

#include "graph/graph.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace penelope {

// Everything the masks depend on. The trainer owns it and advances `step`. It is read each time the graph runs, so it
// must live as long as the graph.
struct Dropout {
    float    rate = 0.0f; // rounded to a multiple of 1 / kDropoutPatterns
    uint64_t seed = 0;
    uint64_t step = 0;
    // Stream s of the graph computes example examples[s % size] of the minibatch. Empty: example s.
    std::vector<uint32_t> examples;
    // Left padding of that example, in rows, indexed alike: positions are counted after it. Empty: no padding.
    std::vector<int> left_padding;

    // The table of masks [kDropoutBlock, kDropoutPatterns]. In every column exactly the fraction `rate` is zero.
    const std::vector<float> & bank() const;

  private:
    mutable std::shared_ptr<const std::vector<float>> bank_;

  public:
    Dropout() = default;
    Dropout(float share, uint64_t run_seed, uint64_t at_step) : rate(share), seed(run_seed), step(at_step) {}
};

constexpr int64_t kDropoutBlock    = 64;
constexpr int64_t kDropoutPatterns = 4096;

// Block length for rows of n_features: kDropoutBlock or a divisor of it.
int64_t dropout_block(int64_t n_features);

// One dropout operation of a graph: its number and the rows it works on.
struct Draw {
    int64_t                                      number = 0;
    std::shared_ptr<const std::vector<SeqRange>> rows; // null: row r is position r of sequence 0

    // Indices of the masks in the bank for blocks first .. first + n - 1 of x.
    void choose(const Dropout & source, Node x, int64_t first, int64_t n, int32_t * rows_of_bank) const;
};
// A new dropout operation on x, with the graph's next number and current rows.
Draw next_draw(Graph & g, Node x);

// dropout(x) from ggml operations that every backend supports. The CPU uses cpu_dropout() in graph/kernels.h.
Node device_dropout(Graph & g, Node x, const Dropout & source, const Draw & draw);

} // namespace penelope
