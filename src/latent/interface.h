// The interface rows: how they enter the decoder (boundary, Equations 2 and 3) and leave it (the final pass).
//
// Rows of a question batch are laid out as [X_1 .. X_n | I_1 .. I_n | Y_1 .. Y_n]: prompts, interfaces of m + q rows
// each, and in training the target tokens. A call may leave out a part from either end.
#pragma once

#include "latent/modules.h"
#include "model/backbone.h"

namespace penelope {

struct Boundary {
    Node prompt;  // H_x, [d, n_prompt rows]
    Node memory;  // M_0, [d, m * n]
    Node readout; // R_0, [d, q * n]
    Node target;  // [d, n_target rows], null without targets
};

// Equation 2: [H_x; M_0; R_0] = F_[0:s)([X; A+G; Q]). prompt and target are embedded tokens; target may be null.
// rows: all of them, in the order above.
Boundary boundary(Graph & g, const Backbone & model, const PenelopeModules & modules, const LatentShape & shape,
                  Node prompt, Node target, int n_sequences, const RowLayout & rows, SequenceState & kv);

// Equation 3: leaves the keys and values of layers [s:e) over H_x in kv. Returns the prompt rows after layer e - 1, or
// null when e = L and nobody needs them.
Node prompt_cache(Graph & g, const Backbone & model, const LatentShape & shape, Node prompt,
                  const RowLayout & prompt_rows, SequenceState & kv);

// [M; R] of each sequence one after the other, [d, (m + q) * n].
Node join_interface(Graph & g, const LatentShape & shape, Node memory, Node readout);

// The final pass: interface (and target) rows through F_[s:L). When e < L the prompt rows, as left by prompt_cache(),
// join them for [e:L). rows: of interface and target; all_rows: with the prompt in front. Gives the rows kept by
// `output_rows`, which counts rows of the last call (so prompts included when e < L).
Node final_pass(Graph & g, const Backbone & model, const LatentShape & shape, Node interface_and_target, Node prompt,
                const RowLayout & rows, const RowLayout & all_rows, SequenceState & kv, const OutputRows & output_rows);

} // namespace penelope
