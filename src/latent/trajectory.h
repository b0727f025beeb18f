// The whole latent trajectory of one or more questions, from embedded prompt to the rows the answer is read from:
// boundary, prompt cache, K refinements, final pass. Inference gives a SequenceCache and ready time tables; training
// gives SequenceNodes, a tape and target rows.
#pragma once

#include "latent/gold_memory.h"
#include "latent/interface.h"
#include "latent/time.h"

#include <vector>

namespace penelope {

struct TrajectoryRows {
    RowLayout  all;              // prompts, interfaces, targets
    RowLayout  prompt;           // prompts alone
    RowLayout  memory;           // m rows per sequence, places n .. n+m-1
    RowLayout  interface_target; // interfaces and targets
    OutputRows output;           // rows of the last call that are needed
    // Teacher forcing: gold[t - 1] replaces the memory after step t, for steps 1 .. gold.size() < K. Empty in
    // inference.
    std::vector<GoldRows> gold;
};

// States worth looking at; index t = 0 .. K (step 0 has only memory and readout).
struct Trajectory {
    Node              prompt;              // H_x
    std::vector<Node> memory, readout;     // M_t, R_t
    std::vector<Node> features, modulated; // H_t, H^_t; modulated is empty for `overwrite`
    std::vector<Node> proposal;            // q_t
    Node              output;              // rows chosen by TrajectoryRows::output after layer L-1
};

// steps: at least K of them; target may be null.
Trajectory build_trajectory(Graph & g, const Backbone & model, const PenelopeModules & modules,
                            const LatentShape & shape, const std::vector<TimeStep> & steps, int n_steps, Node prompt,
                            Node target, int n_sequences, const TrajectoryRows & rows, SequenceState & kv);

// One refinement, Equations 4 to 12: appends step t = memory.size() to the trajectory.
void refine_once(Graph & g, const Backbone & model, const PenelopeModules & modules, const LatentShape & shape,
                 const TimeStep & step, const RowLayout & memory_rows, SequenceState & kv, Trajectory & trajectory);

} // namespace penelope
