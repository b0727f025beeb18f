// Shared by Coconut and CODI: prompt, start row and K thoughts of every sequence run through all layers; the rows that
// predict the target follow.
//
// Positions in sequence b with a prompt of n tokens: prompt 0 .. n-1, start row n, thoughts n+1 .. n+K, end row n+K+1,
// then the target tokens. The end row predicts the first target token.
#pragma once

#include "train/objective.h"

#include <vector>

namespace penelope {

struct ThoughtRows {
    Node                  input;      // [d, n_targets]: end row and all target tokens but the last, of every sequence
    std::vector<SeqRange> predicting; // positions of these rows
    int64_t               n_tokens;   // number of rows of `tokens` that were used
};

// tokens: prompts of all sequences, then their targets, each without its last token.
ThoughtRows build_thought_rows(Graph & g, const Backbone & model, const ThoughtModules & modules,
                               const Minibatch & batch, Node tokens, BatchInputs & inputs);

} // namespace penelope
