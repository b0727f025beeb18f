// Engines for benchmarks: published model sizes with random weights, or a real backbone with random latent modules.
#pragma once

#include "infer/engine.h"

namespace penelope {

struct RandomEngineOptions {
    std::string base;               // a backbone file ...
    std::string shape;              // ... or a known shape
    std::string type      = "q8_0"; // of the matrices of a shape
    int         start     = -1;     // interval; -1: the last third of the layers, as the paper's [11,16) of 16
    int         end       = -1;
    int         k_max     = 8;
    int         lora_rank = 16; // 0: none
    std::string device    = "auto";
    std::string split; // as LoadOptions has it
    bool        repack = true;
};

// Has every method there is. Throws Error(usage) for an unknown shape or type, naming the known ones.
std::shared_ptr<const Engine> random_engine(const RandomEngineOptions & options);

std::vector<std::string> known_shapes();

} // namespace penelope
