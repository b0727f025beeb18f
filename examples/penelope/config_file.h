// The file of --config: TOML whose keys are long flag names and whose values are strings, numbers, booleans or arrays
// of them.
#pragma once

#include <string>
#include <vector>

namespace penelope {

struct ConfigEntry {
    std::string              key;
    std::vector<std::string> values; // as a flag would spell them
    int                      line;
};

// In file order. Throws UsageError for what TOML or these rules do not allow, naming the line.
std::vector<ConfigEntry> read_config_file(const std::string & path);

} // namespace penelope
