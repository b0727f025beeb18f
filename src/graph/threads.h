// How many threads to use for a graph. ggml's threads synchronize after every node. For small products the barrier
// costs more than the parallelism gains, and on a busy machine each barrier waits for the thread that was descheduled.
#pragma once

#include "graph/graph.h"

namespace penelope {

// Multiply-adds of a product above which it is worth splitting over threads.
constexpr int64_t kMinParallelOps = 150'000;

// Whether the graph's products are on average too small for several threads. Work is counted per sequence, so that the
// answer does not depend on the batch size.
bool has_small_products(const Graph & g, size_t n_sequences);

// Applies to graphs computed from now on. Ignored by backends without threads.
void set_n_threads(const Backend & backend, int n);

} // namespace penelope
