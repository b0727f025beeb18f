// How long to think, and thinking that long: the latent steps of one or more sequences, each until it has had enough.
#pragma once

#include "method/latent_steps.h"

namespace penelope {

struct HaltingPolicy {
    int   max_steps = 0;    // steps at most
    float cosine    = 2.0f; // stop when the readout turns less than this between two steps, as a cosine; above 1: never
};

struct LatentResult {
    Prefill          prefilled;
    std::vector<int> n_steps;            // taken, by sequence
    std::vector<int> layer_applications; // likewise
};

// Called after every step, t = 0 being the start, with a sequence's stream. False: this sequence has thought enough.
using LookCallback = std::function<bool(int stream)>;

LatentResult run_latent_steps(LatentSteps & steps, const std::vector<Prompt> & prompts, const HaltingPolicy & plan,
                              const LookCallback & look = {});

} // namespace penelope
