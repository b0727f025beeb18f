// Converts the flags of penelope train to training settings.
#pragma once

#include "options.h"

#include "train/settings.h"

namespace penelope {

// With --resume, flags that are not given get their values from the run's config.toml.
Options with_run_config(Options options);

TrainSettings read_train_settings(const Options & options);

} // namespace penelope
