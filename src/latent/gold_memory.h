// Teacher forcing of the memory (training only): the input memory of a latent step is replaced by a gold memory that
// encodes the correct result of the previous step. So every step is trained from the first update on, even while
// earlier steps are still wrong.
//
// Gold memory of step t: M*_t = F_[0:s)(Z_t + G), at the memory's places, after the prompt. Row i of Z_t is the
// embedding of token i of the result of step t; rows without a token keep their anchor A. It is a constant: no gradient
// flows into it.
#pragma once

#include "latent/modules.h"
#include "model/backbone.h"

namespace penelope {

// One teacher-forced step of a batch of n sequences.
struct GoldRows {
    Node ids; // I32 [m * n], the token of each row; any where there is none
    // I32 [m * n], row of [embedded ids | A]: r for a row with a token, m * n + r % m for one without (its anchor).
    Node index;
    Node own;    // F32 [1, m * n], 1: the sequence goes on from its own memory, 0: from the gold one
    Node forced; // F32 [1, m * n], 1 - own
};

// M*_t, [d, m * n]. memory_rows: m rows per sequence after its prompt. kv holds the prompts of layers [0:s); what stood
// there after them is replaced.
Node gold_memory(Graph & g, const Backbone & model, const PenelopeModules & modules, const LatentShape & shape,
                 const GoldRows & gold, const RowLayout & memory_rows, SequenceState & kv);

// own where gold.own is 1, gold memory elsewhere. Gradients flow to `memory` where it was taken.
Node replace_memory(Graph & g, const GoldRows & gold, Node memory, Node gold_memory);

} // namespace penelope
