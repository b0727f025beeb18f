// Calibrates the halting threshold of -K auto from answers at every K: stop when the cosine between the readouts of two
// steps exceeds it.
#pragma once

#include "task/score.h"

namespace penelope {

struct HaltingCalibration {
    float  threshold     = 0; // cosine; 0: no threshold reaches the reference
    double exact         = 0; // exact match with this threshold
    double n_steps_taken = 0; // latent steps, mean
    double reference     = 0; // exact match at n_reference steps
    int    n_reference   = 0; // default K of the file
};

// predictions: every question at every K from 0 to k_max. Among the thresholds that lose at most `tolerance` exact
// match against n_reference steps, returns the one with the fewest steps. Throws Error(usage) if a K is missing.
HaltingCalibration calibrate_halting(const std::vector<Prediction> & predictions, int n_reference,
                                     double tolerance = 0.001);

} // namespace penelope
