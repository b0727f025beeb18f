// Evaluations as JSON, written by `penelope eval` and read by `penelope report` and `penelope eval --compare`: one
// object per run with its scores, and one line per question and K with the prediction.
#pragma once

#include "base/json.h"
#include "task/score.h"

#include <string>
#include <vector>

namespace penelope {

// {"status", "task", "method", "results": [per K], "default_K", "best_K", "chance"}; predictions are not part of it.
OrderedJson evaluation_json(const Evaluation & evaluation);

// One line per prediction. run: number of the run, from 1.
std::string prediction_lines(const Evaluation & evaluation, size_t run);

// Reads a file of either kind: one evaluation per run. Throws Error with file and line for other contents, an empty
// file, and a question that occurs twice in a run at one K.
std::vector<Evaluation> read_evaluations(const std::string & path);

} // namespace penelope
