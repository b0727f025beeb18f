// --fit-modules: a start for the memory's GRU (Equation 9) at which a latent step already writes down what it says.
//
// A model that writes visible steps says the next token at its interval output H and reads it again at the interval's
// input, one row later. The GRU of new modules is random: what a step says is lost, and finding the way back is most of
// what the first updates have to learn. Instead, a linear map from H to the input row of the token that follows is
// fitted on the results of some training examples (--targets results) and written into the candidate of the GRU; its update gate
// starts closed, so that the candidate replaces the old memory. Everything stays trainable, files and inference are
// unchanged.
#pragma once

#include "train/step_targets.h"
#include "train/trained_model.h"
#include "train/training_data.h"

namespace penelope {

// Needs the modules of Penelope with the GRU transition; deterministic.
void fit_modules(TrainedModel & model, const TrainingData & data, const StepTargets & targets, const Backend & backend);

} // namespace penelope
