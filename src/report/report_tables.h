// The tables of a report, in Markdown.
#pragma once

#include "report/report_series.h"

#include <string>
#include <vector>

namespace penelope {

// A row per method, in the shape of the paper's table, and what the numbers are.
std::string results_table(const std::vector<ScoredMethod> & methods);

// Empty when the questions are all of one depth.
std::string question_depth_table(const std::vector<ScoredMethod> & methods);

std::string runs_table(const std::vector<NamedRun> & runs);

} // namespace penelope
