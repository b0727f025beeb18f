// Minibatches padded to few different shapes, so that a graph built once serves many of them.
//
// On a GPU building a graph takes about as long as computing it, and lengths seldom come again. All examples of a padded minibatch
// have equally many rows: prompts get rows in front, which the others do not see and which shift neither positions nor dropout, and
// targets get tokens behind that count for nothing. Losses and gradients are those of the minibatch as it was.
#pragma once

#include "model/backbone.h"
#include "train/minibatch.h"

namespace penelope {

// Whether padding leaves everything as it was: recurrent layers have no mask to hide rows with, and the trace of a teacher stands
// between prompt and target.
bool can_be_padded(const Minibatch & batch, const Backbone & model);

Minibatch pad_to_bucket(Minibatch batch);

// As the device likes it: padded off the CPU where it can be.
Minibatch pad_for_device(Minibatch batch, const Backbone & model, const Backend & backend);

} // namespace penelope
