#include "method/plain.h"

#include "method/decode.h"

namespace penelope {

Prefill PlainMethod::prefill(Context & context, const std::vector<Prompt> & prompts, int) const {
    Prefill prefilled;
    prefilled.logits = penelope::prefill(context, prompts, prefilled.layer_applications);
    for (const Prompt & prompt : prompts) {
        prefilled.n_past.push_back(int(prompt.tokens.size()));
    }
    return prefilled;
}

} // namespace penelope
