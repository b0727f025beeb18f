// Evaluations as JSON, written by `penelope eval` and read by `penelope report` and `penelope eval --compare`: an object per run
// with its scores, and a line per question and K with everything needed to look at a failure.
#pragma once

#include "base/json.h"
#include "task/score.h"

#include <string>
#include <vector>

namespace penelope {

// {"status", "task", "method", "results": [per K], "default_K", "best_K", "chance"}; predictions are not part of it.
OrderedJson evaluation_json(const Evaluation & evaluation);

// A line per prediction. run: which of several it is, counted from 1.
std::string prediction_lines(const Evaluation & evaluation, size_t run);

// A file of either kind: one evaluation per run in it. Throws Error naming file and line for what is neither, for an empty
// file, and for a question that a run answers twice at one K.
std::vector<Evaluation> read_evaluations(const std::string & path);

} // namespace penelope
