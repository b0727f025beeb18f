// The task of data that belongs to none of the others: any question, any answer.
#pragma once

#include "task/task.h"

namespace penelope {

// The whole text, trimmed and in one Unicode form.
std::string extract_all(const std::string & text);

// The share of the most frequent answer.
std::vector<ChanceLevel> generic_chance(const std::vector<Example> & examples);

Facets generic_facets(const Example & example); // the number of steps

// A result as it stands within a line: a word with the space before it, a number without, as vocabularies cut them.
std::string with_leading_space(const std::string & result);

// Of each step what follows its last `=`, else its last word, without the punctuation at the end; then the answer.
std::vector<std::string> generic_results(const Example & example);

std::string generic_start(const Example & example); // the first word of the first step

} // namespace penelope
