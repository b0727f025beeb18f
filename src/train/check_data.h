// What a data file is and what a model would see of it, before anything is trained.
#pragma once

#include "base/json.h"

#include <string>

namespace penelope {

// base: a backbone, for lengths in tokens and its chat template; may be empty. task: its name; empty: by the questions.
// The keys: file, format, examples, steps, questions, answers, most_frequent, task, task_reason, first {prompt,
// target} and, with a base, tokens {mean, longest, longest_id, context, too_long}. Throws Error as read_examples and
// choose_task do.
OrderedJson check_data(const std::string & path, const std::string & base, const std::string & task);

} // namespace penelope
