// penelope eval --compare: paired difference in exact match of two prediction files.
#pragma once

#include "options.h"
#include "terminal.h"

namespace penelope {

int compare_predictions(const Options & options, Terminal & terminal);

} // namespace penelope
