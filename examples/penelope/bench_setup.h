// Setup of penelope bench: parses --methods and loads or makes the model.
#pragma once

#include "options.h"
#include "terminal.h"

#include "infer/engine.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

struct BenchMethod {
    std::string name;
    int         count; // K, or number of CoT tokens

    bool visible() const;
};

// "penelope:5,coconut:8,cot:69"
std::vector<BenchMethod> parse_methods(const std::string & text);

// Loads the files of -m and --sidecar; random weights for --shape, random modules for methods without a sidecar.
std::shared_ptr<const Engine> bench_engine(const Options & options, const std::vector<BenchMethod> & methods,
                                           Terminal & terminal);

} // namespace penelope
