// What the ranks of a run exchange beyond numbers: gradients added up, and rank 0's state for all.
#pragma once

#include "train/checkpoint.h"
#include "train/collective.h"

namespace penelope {

// The gradients of all ranks, added up in every one.
void all_reduce_gradients(Collective & ranks, Optimizer & optimizer);

// Every rank takes the weights of rank 0, or weights, moments and their count.
void broadcast_parameters(Collective & ranks, Optimizer & optimizer, CheckpointContents parts);

// Every rank takes the counts and settings of rank 0.
void broadcast_state(Collective & ranks, RunState & state);

} // namespace penelope
