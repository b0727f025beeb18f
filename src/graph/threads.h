// How many threads a graph is worth. They meet after every node: where products are small that costs more than sharing them saves, and
// on a busy machine each meeting waits for whoever was not let run.
#pragma once

#include "graph/graph.h"

namespace penelope {

// Multiplications and additions of a product from which on threads share it.
constexpr int64_t kMinParallelOps = 150'000;

// Whether products of the graph, for one of so many sequences, are on average too small to be shared. Sequences are counted out so
// that company does not change the answer.
bool has_small_products(const Graph & g, size_t n_sequences);

// For the graphs computed from now on; of no effect where the backend has no threads.
void set_n_threads(const Backend & backend, int n);

} // namespace penelope
