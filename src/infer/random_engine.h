// Engines for measuring: known shapes with random weights and no file, and real backbones with random modules. They answer
// nonsense at the speed of the real thing.
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
