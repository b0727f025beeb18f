// Ordinary cached computation: prompts in chunks, and one more token for each of several sequences.
#pragma once

#include "method/method.h"

namespace penelope {

// Runs tokens [first, end) of each prompt through all layers, n_batch rows per graph; returns the last row's logits.
// Counts the sequential layer applications in `applications`.
std::vector<std::vector<float>> prefill(Context & context, const std::vector<Tokens> & prompts, int first,
                                        int & applications);

// Leaves keys and values of prompt tokens [first, ..) of one stream behind, n_batch rows per graph, until at most n_batch
// tokens are left. Returns how many tokens of the prompt are done.
int prefill_chunks(Context & context, const Tokens & prompt, int stream, int first, int & applications);

struct NextToken {
    int     stream;
    int     row; // the place the token takes
    int32_t token;
};

// One step of decoding for several sequences in one graph; logits in the order of `tokens`.
std::vector<std::vector<float>> decode(Context & context, const std::vector<NextToken> & tokens);

} // namespace penelope
