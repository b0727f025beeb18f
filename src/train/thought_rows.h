// What methods whose thoughts are input rows have in common when they are trained: prompt, begin row and K thoughts of every
// sequence pass through all layers, and the rows that predict the target come after them.
//
// The rows of sequence b: prompt at places 0 .. n-1, begin row at n, thoughts at n+1 .. n+K, end row at n+K+1, target tokens after
// it. The end row predicts the first target token.
#pragma once

#include "train/objective.h"

#include <vector>

namespace penelope {

struct ThoughtRows {
    Node                  input;      // [d, n_targets]: end row and target tokens but the last, of every sequence
    std::vector<SeqRange> predicting; // where these rows stand
    int64_t               n_tokens;   // of the rows of `tokens` that were used
};

// tokens: prompts of all sequences, then their targets, each without its last token.
ThoughtRows build_thought_rows(Graph & g, const Backbone & model, const ThoughtModules & modules,
                               const Minibatch & batch, Node tokens, BatchInputs & inputs);

} // namespace penelope
