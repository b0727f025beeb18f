// The target of an example: the text that the model is trained to write after the prompt. It is tokenized as one piece
// without BOS and followed by EOS. For the prompt see text/prompt_template.h.
#pragma once

#include "task/example.h"

#include <string>

namespace penelope {

// Steps n_skip_steps+1 .. J, each followed by a newline, then answer_prefix + answer. The first n_skip_steps steps are
// replaced by latent steps. n_skip_steps >= J: only the answer; 0: CoT.
std::string target_text(const Example & example, size_t n_skip_steps, const std::string & answer_prefix);

} // namespace penelope
