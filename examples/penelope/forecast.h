// Predicts the time of latent steps from the measured time of one layer on a few rows: a Penelope step runs several
// rows through the layers of the interval, a Coconut step one row through all layers.
#pragma once

#include "latent/modules.h"

#include <map>
#include <string>

namespace penelope {

using LayerCosts = std::map<int, double>; // rows -> ms of one layer

// Linear interpolation and extrapolation. Needs at least two measurements.
double layer_cost(const LayerCosts & costs, int n_rows);

// ms between prompt and answer: K times the memory rows through the interval, then the final pass. Memory updates,
// readout and output head are not included.
double penelope_forecast(const LayerCosts & costs, const LatentShape & shape, int n_steps);
// K thoughts and the end-of-thought token through all layers.
double coconut_forecast(const LayerCosts & costs, int n_layer, int n_steps);

// Both predictions in one sentence, and when a Penelope step is cheaper.
std::string forecast_text(const LayerCosts & costs, const LatentShape & shape, int n_layer, int n_steps,
                          int n_thoughts);

} // namespace penelope
