// Reads metrics.jsonl of a training run.
#pragma once

#include "report/chart.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

struct RunLog {
    std::vector<ChartPoint> loss;                    // by update
    std::vector<ChartPoint> valid_loss, valid_exact; // by update; shares
    std::vector<double>     exact_by_depth; // on all of the validation set, K = 0, 1, ...; empty until the run is done
    int                     k_default         = -1; // -1: not chosen yet
    int64_t                 n_updates         = 0;
    double                  seconds           = 0; // spent in updates
    double                  tokens_per_second = 0; // of targets
    uint64_t                peak_memory       = 0;
};

// Ignores an incomplete last line, as a killed run leaves it. Throws Error with file and line for other invalid lines,
// a folder without metrics, and metrics without an update.
RunLog read_run_log(const std::string & folder);

} // namespace penelope
