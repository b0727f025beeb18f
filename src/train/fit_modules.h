// --fit-modules: a start for new modules at which a latent step already writes down what it says.
//
// A model that writes results says the next token at the interval's output H and reads it again at the interval's
// input, one row later. The memory's GRU (Equation 9) of new modules is random: what a step says is lost, and finding
// the way back is most of what the first updates have to learn. Instead, a linear map from H to the input row of the
// token that follows is fitted on the results of some training examples (--targets results) and written into the
// candidate of the GRU. Its update gate starts closed, so that the candidate replaces the old memory. The memory's
// anchor starts as the last token of the prompt, the readout's as the token before the answer. Everything stays
// trainable, files and inference are unchanged.
#pragma once

#include "train/step_targets.h"
#include "train/trained_model.h"
#include "train/training_data.h"

namespace penelope {

// Needs the modules of Penelope; deterministic.
void fit_modules(TrainedModel & model, const TrainingData & data, const StepTargets & targets, const Backend & backend);

} // namespace penelope
