// What a model has to write for an example, as the trainer shows it. Input: an example and the answer prefix of a model; output:
// the target, tokenized as one piece without BOS and followed by EOS. The prompt before it: text/prompt_template.h.
#pragma once

#include "task/example.h"

#include <string>

namespace penelope {

// Steps n_skip_steps+1..J, each followed by a newline, then answer_prefix + answer: the target when the first n_skip_steps steps
// are left to the latent computation. n_skip_steps >= J leaves the answer alone; 0 is visible chain of thought.
std::string target_text(const Example & example, size_t n_skip_steps, const std::string & answer_prefix);

} // namespace penelope
