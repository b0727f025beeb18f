// Which examples of an update run on gold memories, and for how many steps (latent/gold_memory.h).
//
// A forced example draws g from 1 .. K - 1: the memory that enters steps 2 .. g + 1 is gold, from there on it runs on
// its own. The others run on their own memory from the first step on, as inference does. Their share is 1 - forced in
// the first half of the updates and rises to 1 over the second half.
#pragma once

#include "base/rng.h"
#include "train/minibatch.h"

#include <cstdint>

namespace penelope {

// forced: share of forced examples at first. update: 1 .. n_updates.
double free_share(double forced, int64_t update, int64_t n_updates);

// Draws for every example of the whole minibatch, in order, so that ranks and resumed runs agree. Examples whose steps
// say nothing stay free.
void force_memory(Minibatch & batch, double free_share, Rng rng);

} // namespace penelope
