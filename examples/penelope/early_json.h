// Whether failures have to be JSON, before the command line is understood.
#pragma once

#include <string>
#include <vector>

namespace penelope {

// True when --json is asked for by a flag, the environment or a config file, however wrong everything else is.
bool wants_json(const std::vector<std::string> & args);

} // namespace penelope
