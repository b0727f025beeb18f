// Row layout of a batch of Penelope prompts: prompt rows, then interface rows (memory and readout) per sequence.
// Without prompts: of sequences whose prompts are in the cache.
#pragma once

#include "latent/modules.h"
#include "method/method.h"

namespace penelope {

struct BatchLayout {
    std::vector<SeqRange> prompts; // the rows left after prefill_leading_chunks()
    std::vector<SeqRange> interfaces;
    std::vector<SeqRange> memory;
    std::vector<SeqRange> last;         // the last readout row
    std::vector<int32_t>  ids;          // of the prompt rows, padding included
    int                   n_prompt = 0; // rows

    std::vector<SeqRange> all() const; // prompts, then interfaces
};

// Prefills all but the last chunk of prompts longer than n_batch; returns how many tokens of each are done.
std::vector<int> prefill_leading_chunks(Context & context, const std::vector<Prompt> & prompts, int & applications);

BatchLayout make_batch_layout(Context & context, const std::vector<Prompt> & prompts, const std::vector<int> & n_done,
                              const LatentShape & shape, int bucket);

// The last readout rows among the rows of a call that has n_before rows in front of the interfaces.
std::vector<int32_t> last_index(int n_before, int n_sequences, const LatentShape & shape);

} // namespace penelope
