// What bench measures: the methods asked for, and a model they can run on.
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
    int         count; // latent steps, or tokens of the visible trace

    bool visible() const;
};

// "penelope:5,coconut:8,cot:69"
std::vector<BenchMethod> parse_methods(const std::string & text);

// Files where they say everything; random weights for a shape, random modules for methods that no file brings.
std::shared_ptr<const Engine> bench_engine(const Options & options, const std::vector<BenchMethod> & methods,
                                           Terminal & terminal);

} // namespace penelope
