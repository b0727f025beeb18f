// How long to think, and thinking that long: the latent steps of one or more sequences, each until it has had enough.
#pragma once

#include "method/latent_steps.h"

namespace penelope {

struct ThinkingPlan {
    int   n_most  = 0;    // steps at most
    float settled = 2.0f; // stop when the readout turns less than this between two steps, as a cosine; above 1: never
};

struct Thought {
    Filled           filled;
    std::vector<int> n_steps;            // taken, by sequence
    std::vector<int> layer_applications; // likewise
};

// Called after every step, t = 0 being the start, with a sequence's stream. False: this sequence has thought enough.
using LookCallback = std::function<bool(int stream)>;

Thought think(LatentSteps & steps, const std::vector<Prompt> & prompts, const ThinkingPlan & plan,
              const LookCallback & look = {});

} // namespace penelope
