// Ordinary cached computation: prompts in chunks, and one more token for each of several sequences.
#pragma once

#include "method/method.h"

namespace penelope {

// Runs the tokens of each prompt that are not kept through all layers, n_batch rows per graph; returns the last row's logits.
// Counts the sequential layer applications in `applications`.
std::vector<std::vector<float>> prefill(Context & context, const std::vector<Prompt> & prompts, int & applications);

// A prompt is read in chunks that end at multiples of n_batch, whatever is kept of it: a row meets the same kernels then, and gets the
// same bits, as when nothing was kept. Where the chunk that follows the kept tokens ends:
int chunk_end(const Context & context, const Prompt & prompt);

// Its rows [n_cached, end), which lie in one chunk.
SeqRange prompt_range(const Context & context, const Prompt & prompt, int end);

// Leaves keys and values of the next chunk behind; returns how many tokens of the prompt are done, the kept ones included.
int prefill_chunk(Context & context, const Prompt & prompt, int & applications);

// The same for all but the last chunk.
int prefill_chunks(Context & context, const Prompt & prompt, int & applications);

// Where layers have a recurrent state: reads the prompt up to its token n_stable_prefix, from which the next prompt will differ, and
// keeps the state there. Moves prompt.n_cached on; nothing to do elsewhere, or when that much is kept already. Returns the
// sequential layer applications.
int prefill_stable_prefix(Context & context, Prompt & prompt, int n_stable_prefix);

struct NextToken {
    int     stream;
    int     row; // the place the token takes
    int32_t token;
};

// One step of decoding for several sequences in one graph; logits in the order of `tokens`.
std::vector<std::vector<float>> decode(Context & context, const std::vector<NextToken> & tokens);

} // namespace penelope
