// `penelope data check`: format, statistics and lengths of a data file, and the first example as the model would see
// it.
#pragma once

#include "base/json.h"

#include <string>

namespace penelope {

// base: backbone for token counts and the chat template; may be empty. task: name; empty: recognized by the questions.
// The keys: file, format, examples, steps, questions, answers, most_frequent, task, task_reason, first {prompt,
// target} and, with a base, tokens {mean, longest, longest_id, context, too_long}. Throws Error as read_examples and
// choose_task do.
OrderedJson check_data(const std::string & path, const std::string & base, const std::string & task);

} // namespace penelope
