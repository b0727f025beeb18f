// What tests of training steps share: one thread (support/cpu.h), the examples of a golden case as a minibatch, and
// whether gradients are those of the reference or those that differences show.
#pragma once

#include "support/cpu.h"
#include "support/golden.h"
#include "train/minibatch.h"
#include "train/trained_model.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace penelope::test {

Minibatch all_examples(const GoldenCase & golden, int n_steps);

// CODI's examples of a golden case ("last" has them), from their texts: each with the steps its teacher writes.
Minibatch codi_examples(const GoldenCase & golden, const Tokenizer & tokenizer, int n_steps);

// Goes on from the case's sidecar for the method, or from its LoRA where the modules are given otherwise.
TrainModelOptions train_options_of(const GoldenCase & golden, const std::string & method);

// One per group of the model, at the factor of an update.
std::vector<double> lrs_of(const TrainedModel & model, const GoldenRecipe & recipe, double factor);

using Gradients = std::map<std::string, std::vector<float>>; // by parameter

// As the last computed graph left them.
Gradients gradients_of(const TrainedModel & model);

double length_of(const Gradients & gradients);

// Every gradient of the model, divided by what the loss was multiplied with, against "<prefix><name>" of the file,
// relative to its largest element; and no tensor of the file left out.
void check_gradients(const TrainedModel & model, const SafetensorsReader & expected, const std::string & prefix,
                     double tolerance, float loss_scale = 1);

// How steeply the loss rises along these gradients, from a step back to a step ahead: as their length says, if they are
// right. The parameters are then as before.
double slope_along(const Gradients & gradients, Optimizer & optimizer, double step,
                   const std::function<double()> & loss);

} // namespace penelope::test
