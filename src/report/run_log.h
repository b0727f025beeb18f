// What a training run wrote down about itself, read back from the metrics.jsonl of its folder.
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

// A last line without its end, as a killed run leaves it, is passed over. Throws Error naming file and line for any other that
// cannot be read, for a folder without metrics and for metrics without an update.
RunLog read_run_log(const std::string & folder);

} // namespace penelope
