// What the memory should say at each latent step, for a loss on every step: the results of the gold steps as tokens.
#pragma once

#include "task/task.h"
#include "text/tokenizer.h"

#include <cstdint>
#include <vector>

namespace penelope {

// Tokens of the result after steps 1 .. n_steps, at most n_rows of each, one for a row of the memory. After the last gold step the
// result stays the final one. No step of an example without results says anything.
std::vector<std::vector<int32_t>> step_target_tokens(const Task & task, const Example & example,
                                                     const Tokenizer & tokenizer, int n_steps, int n_rows);

} // namespace penelope
