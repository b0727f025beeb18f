// Activation checkpointing (torch.utils.checkpoint): activations inside a block are not stored for the backward pass
// but recomputed there. Costs a second forward pass of the block and saves its memory.
#pragma once

#include "graph/graph.h"

#include <functional>

namespace penelope {

// Runs build() and returns its result. With a tape, backward() runs build() a second time and takes the gradients from
// the recomputed nodes. Of the first run only nodes that are read outside the block stay in memory.
//
// build() must create the same operations both times, in the same order. It may read any earlier node, and any node it
// creates may be used later, also one it returns through a side channel (keys and values in a SequenceNodes).
// Everything it captures must live until backward() has returned.
Node checkpoint_activations(Graph & g, const std::function<Node()> & build);

} // namespace penelope
