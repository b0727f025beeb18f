// Repeated measurements of several things side by side.
#pragma once

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
    std::function<int()> run; // does it once, gives the sequential layer applications

    std::vector<double> ms; // one per repetition, divided
    int                 layer_applications = 0;
    Traffic             traffic; // of the last repetition

    double mean() const;
    double sd() const; // of the sample; 0 for one
};

// Runs every case once to warm up and then `repetitions` times, taking turns, so that a drift of the machine meets all.
void run_cases(std::vector<BenchCase> & cases, int repetitions, Terminal & terminal);

} // namespace penelope
