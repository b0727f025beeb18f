// The task of data that belongs to none of the others: any question, any answer.
#pragma once

#include "task/task.h"

namespace penelope {

// The whole text, trimmed and in one Unicode form.
std::string extract_all(const std::string & text);

// The share of the most frequent answer.
std::vector<ChanceLevel> generic_chance(const std::vector<Example> & examples);

Facets generic_facets(const Example & example); // the number of steps

} // namespace penelope
