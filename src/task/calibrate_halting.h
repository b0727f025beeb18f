// The threshold of -K auto, from answers at every K: how little a step has to turn the readout for further ones to be spared.
#pragma once

#include "task/score.h"

namespace penelope {

struct HaltingCalibration {
    float  threshold     = 0; // cosine; 0: none keeps the exactness
    double exact         = 0; // of these questions when stopped by it
    double n_steps_taken = 0; // latent steps, mean
    double reference     = 0; // exactness at the K of the file
    int    n_reference   = 0; // that K
};

// predictions: each question at K = 0, 1, ... up to the most the file takes. Chooses what takes the fewest steps among the
// thresholds that lose at most `tolerance` (a share) against n_reference steps. Throws Error(usage) when a K is missing.
HaltingCalibration calibrate_halting(const std::vector<Prediction> & predictions, int n_reference,
                                     double tolerance = 0.001);

} // namespace penelope
