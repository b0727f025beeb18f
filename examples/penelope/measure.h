// Runs benchmark cases repeatedly and records their times.
#pragma once

#include "base/statistics.h"
#include "graph/rpc.h"
#include "method/context.h"
#include "terminal.h"

#include <functional>
#include <string>
#include <vector>

namespace penelope {

struct BenchCase {
    std::string          test;              // "pp512"
    std::string          method;            // "plain"
    int                  n_steps;           // K
    int                  n_tokens;          // read or written in one run
    double               divisor   = 1.0;   // of the times, e.g. by the number of layers
    bool                 is_decode = false; // its tokens are written one by one
    Context *            context   = nullptr;
    std::function<int()> run; // runs once, returns the number of sequential layer applications

    std::vector<double> ms; // one per repetition, divided
    int                 layer_applications = 0;
    Traffic             traffic; // of the last repetition

    double mean() const { return mean_std(ms).mean; }
    double sd() const { return mean_std(ms).sd; }
};

// One warm-up run per case, then `repetitions` rounds over all cases, so that a drifting clock speed affects all.
void run_cases(std::vector<BenchCase> & cases, int repetitions, Terminal & terminal);

} // namespace penelope
