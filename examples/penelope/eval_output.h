// What penelope eval prints: tables and notes for people, objects for programs.
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

// The scores of runs, complete ones, under the names of their models.
void print_runs(const std::vector<Evaluation> & runs, const std::vector<std::string> & names, const Options & options,
                Terminal & terminal);

// The scores of runs of which the last was interrupted, as far as it came, and returns the exit code. file: where the predictions
// are, empty for nowhere.
int print_interrupted(std::vector<Evaluation> runs, const std::vector<std::string> & names, const std::string & file,
                      const Options & options, Terminal & terminal);

} // namespace penelope
