// Runs the latent steps of one or more sequences; each halts by itself when its readout stops changing (-K auto).
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

// Called with the stream after every step (t = 0: the start). False halts this sequence.
using LookCallback = std::function<bool(int stream)>;

LatentResult run_latent_steps(LatentSteps & steps, const std::vector<Prompt> & prompts, const HaltingPolicy & plan,
                              const LookCallback & look = {});

} // namespace penelope
