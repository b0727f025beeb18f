// Prefill in chunks, and decoding one token for each sequence of a batch.
#pragma once

#include "method/method.h"

namespace penelope {

// Prefills the tokens of each prompt that are not cached, n_batch rows per graph; returns the logits of the last row.
// Counts the sequential layer applications in `applications`.
std::vector<std::vector<float>> prefill(Context & context, const std::vector<Prompt> & prompts, int & applications);

// Where the chunk that follows the cached tokens ends. Chunks end at multiples of n_batch, whatever is cached: a row
// then goes through the same kernels, and gets the same bits, as without a cache. n_stable_prefix: models with
// recurrent layers also stop where this prefix ends, to save a checkpoint; a batch-invariant context stops up to 11
// rows before, where it changes no bit, or not at all.
int chunk_end(Context & context, const Prompt & prompt, int n_stable_prefix = 0);

// Rows [n_cached, end) of the prompt, which are in one chunk.
SeqRange prompt_range(Context & context, const Prompt & prompt, int end);

// Prefills the next chunk without logits; returns how many tokens of the prompt are in the cache afterwards.
int prefill_chunk(Context & context, const Prompt & prompt, int & applications);

// The same for all but the last chunk.
int prefill_chunks(Context & context, const Prompt & prompt, int & applications);

// For models with recurrent layers: prefills the prompt up to n_stable_prefix, the part the next prompt of the
// conversation will share, and saves a checkpoint there. Advances prompt.n_cached. Does nothing for other models, or
// when that much is cached already. Returns the sequential layer applications.
int prefill_stable_prefix(Context & context, Prompt & prompt, int n_stable_prefix);

struct NextToken {
    int     stream;
    int     row; // position of the token
    int32_t token;
};

// One decoding step for several sequences in one graph; logits in the order of `tokens`.
std::vector<std::vector<float>> decode(Context & context, const std::vector<NextToken> & tokens);

} // namespace penelope
