// Which elements dropout takes away: the same on every device.
//
// Elements are decided in blocks. A bank holds blocks of factors, 0 for a dropped element and 1 / (1 - rate) for a kept one,
// drawn once from the seed; every block of a use takes one of them, by a number that follows from seed, step, draw, example and
// place. So the CPU multiplies with rows of a table, and a device gathers the same rows of the same table; and an example loses
// the same elements whatever other examples lie beside it.
#pragma once

#include "graph/graph.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace penelope {

// What dropout takes away follows from these alone. The trainer keeps them and moves `step` on; they are read whenever the
// graph runs and must live as long as it does.
struct Dropout {
    float    rate = 0.0f; // in steps of 1 / kDropoutPatterns
    uint64_t seed = 0;
    uint64_t step = 0;
    // The number in the whole minibatch of the example that stream s works on: examples[s % size]. Empty: s itself.
    std::vector<uint32_t> examples;
    // Places at the front of that example that hold nothing, likewise: draws count from there. Empty: none.
    std::vector<int> left_padding;

    // [kDropoutBlock, kDropoutPatterns], made on the first call. Of every column exactly the share `rate` is dropped.
    const std::vector<float> & bank() const;

  private:
    mutable std::shared_ptr<const std::vector<float>> bank_;

  public:
    Dropout() = default;
    Dropout(float share, uint64_t run_seed, uint64_t at_step) : rate(share), seed(run_seed), step(at_step) {}
};

constexpr int64_t kDropoutBlock    = 64;
constexpr int64_t kDropoutPatterns = 4096;

// The length of the blocks that rows of n_features fall into: the bank's own or a part of it.
int64_t dropout_block(int64_t n_features);

// One use of dropout in a graph: its number and the rows it works on.
struct Draw {
    int64_t                            number = 0;
    std::shared_ptr<const SeqRowsList> rows; // null: rows of one sequence from its beginning

    // Which rows of the bank, seen as [block, ...], the blocks first .. first + n - 1 of x take.
    void choose(const Dropout & source, Node x, int64_t first, int64_t n, int32_t * rows_of_bank) const;
};
// The next of the graph, on the rows the graph works on now.
Draw next_draw(Graph & g, Node x);

// x with its share of zeros, by operations every device has; the CPU has a kernel of its own (graph/kernels.h).
Node device_dropout(Graph & g, Node x, const Dropout & source, const Draw & draw);

} // namespace penelope
