// Padding to length buckets, so that one graph serves many minibatches. On a GPU building a graph takes about as long
// as running it, and exact lengths rarely repeat.
//
// Prompts are padded on the left with masked rows, which change neither positions nor dropout of the others. Targets
// are padded on the right with tokens whose loss weight is 0. Loss and gradients are unchanged.
#pragma once

#include "model/backbone.h"
#include "train/minibatch.h"

namespace penelope {

// False for recurrent layers, which cannot mask rows, and for teachers, whose trace is between prompt and target.
bool can_be_padded(const Minibatch & batch, const Backbone & model);

Minibatch pad_to_bucket(Minibatch batch);

// Pads on any device but the CPU, if padding is possible.
Minibatch pad_for_device(Minibatch batch, const Backbone & model, const Backend & backend);

} // namespace penelope
