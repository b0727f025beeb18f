// Output of penelope eval: a Markdown table with notes, or JSON.
#pragma once

#include "options.h"
#include "terminal.h"

#include "base/json.h"
#include "task/compare.h"
#include "task/score.h"

#include <string>
#include <vector>

namespace penelope {

std::string percent(double share); // "87.50 %"

std::string difference_text(const PairedDifference & d);
OrderedJson difference_json(const PairedDifference & d);

// Prints the scores of complete runs, labelled with the names of their models.
void print_runs(const std::vector<Evaluation> & runs, const std::vector<std::string> & names, const Options & options,
                Terminal & terminal);

// Prints the scores of runs, the last of which was interrupted, and returns the exit code. file: the predictions file,
// or "".
int print_interrupted(std::vector<Evaluation> runs, const std::vector<std::string> & names, const std::string & file,
                      const Options & options, Terminal & terminal);

} // namespace penelope
