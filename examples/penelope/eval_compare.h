// penelope eval --compare: the paired difference of two files of predictions.
#pragma once

#include "options.h"
#include "terminal.h"

namespace penelope {

int compare_predictions(const Options & options, Terminal & terminal);

} // namespace penelope
