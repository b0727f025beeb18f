#include "method/plain.h"

#include "method/decode.h"

namespace penelope {

Filled PlainMethod::fill(Context & context, const std::vector<Tokens> & prompts, int, int n_kept) const {
    Filled filled;
    filled.logits = prefill(context, prompts, n_kept, filled.layer_applications);
    for (const Tokens & prompt : prompts) {
        filled.n_rows.push_back(int(prompt.size()));
    }
    return filled;
}

} // namespace penelope
