// Trading work for memory: a part of the graph whose intermediate results are not kept for the backward but built again there.
#pragma once

#include "graph/graph.h"

#include <functional>

namespace penelope {

// Runs build() and returns its result. With a tape, the operations it put down are put down a second time when the gradients
// are built, and the gradients are taken from those: of the first ones only what later operations read stays in memory.
//
// build() must put down the same operations both times. It may read any node made before, watched or not, and whatever it made
// may be used afterwards, its result or a node it left elsewhere (keys and values in a store). What it refers to must live until
// backward() has returned.
Node checkpoint_activations(Graph & g, const std::function<Node()> & build);

} // namespace penelope
