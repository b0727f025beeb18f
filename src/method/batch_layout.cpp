#include "method/batch_layout.h"

#include "method/decode.h"

#include <algorithm>

namespace penelope {

std::vector<SeqRange> BatchLayout::all() const {
    std::vector<SeqRange> both = prompts;
    both.insert(both.end(), interfaces.begin(), interfaces.end());
    return both;
}

std::vector<int> prefill_leading_chunks(Context & context, const std::vector<Prompt> & prompts, int & applications) {
    std::vector<int> n_done;
    for (const Prompt & prompt : prompts) {
        n_done.push_back(prefill_chunks(context, prompt, applications));
    }
    return n_done;
}

BatchLayout make_batch_layout(Context & context, const std::vector<Prompt> & prompts, const std::vector<int> & n_done,
                              const LatentShape & shape, int bucket) {
    BatchLayout p;
    const int   n_inter = shape.n_interface();
    const auto  seen    = [&](int n) { return std::min(n, context.n_ctx()); }; // padding may reach beyond the context
    for (size_t i = 0; i < prompts.size(); i++) {
        const Tokens & tokens = prompts[i].tokens;
        const int      stream = prompts[i].stream;
        const int      n_all  = int(tokens.size());
        const int      n_left = n_all - n_done[i];
        const int      padded = (n_left + bucket - 1) / bucket * bucket;
        const int      n_seen = n_done[i] + padded; // places up to the end of the prompt, padding included
        const SeqRange whole  = prompt_range(context, { tokens, stream, n_done[i] }, n_all);
        p.prompts.push_back({ stream, n_done[i], padded, seen(n_seen), n_left, StateSlot::current,
                              StateSlot::prompt_end, whole.n_queries });
        p.interfaces.push_back(
            { stream, n_all, n_inter, seen(n_seen + n_inter), n_inter, StateSlot::prompt_end, StateSlot::current });
        p.memory.push_back({ stream, n_all, shape.n_memory, seen(n_seen + shape.n_memory), shape.n_memory,
                             StateSlot::prompt_end, StateSlot::discard });
        p.last.push_back({ stream, n_all + n_inter - 1, 1, seen(n_seen + n_inter), 1 });
        p.ids.insert(p.ids.end(), tokens.begin() + n_done[i], tokens.end());
        p.ids.resize(p.ids.size() + size_t(padded - n_left), 0);
        p.n_prompt += padded;
    }
    return p;
}

std::vector<int32_t> last_index(int n_before, int n_sequences, const LatentShape & shape) {
    std::vector<int32_t> index;
    for (int i = 1; i <= n_sequences; i++) {
        index.push_back(n_before + i * shape.n_interface() - 1);
    }
    return index;
}

} // namespace penelope
