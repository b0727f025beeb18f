// The data series of the charts in a report.
#pragma once

#include "report/chart.h"
#include "report/run_log.h"
#include "task/score.h"

#include <string>
#include <vector>

namespace penelope {

struct NamedRun {
    std::string label;
    RunLog      log;
};

// The repetitions of one method.
struct ScoredMethod {
    std::string             label;
    std::vector<Evaluation> runs;
};

// Averages over equal intervals, to smooth curves of thousands of values.
std::vector<ChartPoint> averaged(const std::vector<ChartPoint> & points);

std::vector<ChartPoint> in_percent(std::vector<ChartPoint> points);

// Exact match in percent: mean over the runs at each K that all of them were scored at.
Series by_depth(const ScoredMethod & method);

// Mean over the runs, each at its own K, of the questions of one depth.
Series by_question_depth(const ScoredMethod & method);

// The points of by_depth against milliseconds, those that were timed.
Series by_latency(const ScoredMethod & method);

} // namespace penelope
