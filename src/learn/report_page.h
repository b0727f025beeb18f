// report.html of `penelope learn`: one page without other files, with the verdict, the scores, charts and sample
// answers side by side.
#pragma once

#include "learn/learn.h"
#include "learn/run_files.h"
#include "learn/score_run.h"

#include <string>
#include <vector>

namespace penelope {

// Replaces `path`.
void write_report_page(const ScoredRun & scored, const LearnResult & result, const LearnOptions & options,
                       const RunFiles & files, const std::vector<LearnStage> & stages, const std::string & path);

} // namespace penelope
