// What latent steps should take on a machine, from what one layer costs it on a few rows: Penelope takes several rows through some
// of the layers, Coconut one row through all of them.
#pragma once

#include "latent/modules.h"

#include <map>
#include <string>

namespace penelope {

using LayerCosts = std::map<int, double>; // rows -> ms of one layer

// Between the measured numbers of rows, and beyond them, along straight lines. At least two are measured.
double layer_cost(const LayerCosts & costs, int n_rows);

// ms between prompt and answer: K refinements of the memory through the interval, then the final pass; memory updates, readout
// and head are not in it.
double penelope_forecast(const LayerCosts & costs, const LatentShape & shape, int n_steps);
// K thoughts and the end row through all layers.
double coconut_forecast(const LayerCosts & costs, int n_layer, int n_steps);

// Both in a sentence, and when a step of which is cheaper.
std::string forecast_text(const LayerCosts & costs, const LatentShape & shape, int n_layer, int n_steps,
                          int n_thoughts);

} // namespace penelope
