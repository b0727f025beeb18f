// What the flags of penelope train say, as the settings of a run.
#pragma once

#include "options.h"

#include "train/settings.h"

namespace penelope {

// With --resume, what the flags do not say is what the run was started with.
Options with_run_config(Options options);

TrainSettings read_train_settings(const Options & options);

} // namespace penelope
