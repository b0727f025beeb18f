// The generic task, for your own data: any question, any answer.
#pragma once

#include "task/task.h"

namespace penelope {

// The whole text, trimmed and in one Unicode form.
std::string extract_all(const std::string & text);

// The majority baseline.
std::vector<ChanceLevel> generic_chance(const std::vector<Example> & examples);

Facets generic_facets(const Example & example); // the number of steps

// A result as it is tokenized inside a line: a word with the space before it, a number without.
std::string with_leading_space(const std::string & result);

// For each step the text after its last `=`, else its last word without punctuation; then the answer.
std::vector<std::string> generic_results(const Example & example);

std::string generic_start(const Example & example); // the first word of the first step

} // namespace penelope
