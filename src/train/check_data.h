// What a data file is and what a model would see of it, before anything is trained.
#pragma once

#include "base/json.h"

#include <string>

namespace penelope {

// base: a backbone, for lengths in tokens and its chat template; may be empty. The object's keys: file, format, examples, steps,
// questions, answers, most_frequent, task, first {prompt, target} and, with a base, tokens {mean, longest, longest_id, context,
// too_long}. Throws Error as read_examples does.
OrderedJson check_data(const std::string & path, const std::string & base);

} // namespace penelope
