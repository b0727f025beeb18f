// The files of a data directory: train and valid, as JSON Lines or as Coconut's JSON.
#pragma once

#include <string>

namespace penelope {

// "<dir>/<split>.jsonl", "<dir>/<split>.json" or "<dir>/<split>.csv", the first there is; else "".
std::string find_split(const std::string & dir, const std::string & split);

// Throws Error(not_found) naming what was looked for.
std::string get_split(const std::string & dir, const std::string & split);

} // namespace penelope
