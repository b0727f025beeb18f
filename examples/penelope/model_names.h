// Turns names of models (-hf, --sidecar-hf) into paths before a command runs, so that commands know files alone.
#pragma once

#include "options.h"
#include "terminal.h"

namespace penelope {

// The options with -m, --sidecar, --base or the file argument set to what was downloaded; unchanged if no name is
// given. If -hf names a sidecar, its backbone is found, too, and downloaded after asking. Throws UsageError if a file
// and a name are given for the same thing.
Options with_named_models(const Options & options, Terminal & terminal);

} // namespace penelope
