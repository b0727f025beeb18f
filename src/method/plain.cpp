#include "method/plain.h"

#include "method/decode.h"

namespace penelope {

Filled PlainMethod::fill(Context & context, const std::vector<Prompt> & prompts, int) const {
    Filled filled;
    filled.logits = prefill(context, prompts, filled.layer_applications);
    for (const Prompt & prompt : prompts) {
        filled.n_rows.push_back(int(prompt.tokens.size()));
    }
    return filled;
}

} // namespace penelope
