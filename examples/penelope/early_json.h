// Finds out whether errors must be JSON before the command line is parsed, since parsing itself may fail.
#pragma once

#include <string>
#include <vector>

namespace penelope {

// True if --json is set by flag, environment or config file, even if other options are invalid.
bool wants_json(const std::vector<std::string> & args);

} // namespace penelope
