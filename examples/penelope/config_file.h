// The file of --config: TOML whose keys are long flag names and whose values are strings, numbers, booleans or arrays
// of them. The key include names another such file, relative to this one; keys of this file take precedence over it.
#pragma once

#include <string>
#include <vector>

namespace penelope {

struct ConfigEntry {
    std::string              key;
    std::vector<std::string> values; // as a flag would spell them
    std::string              where;  // "a.toml, line 3"
};

// Each key once. Throws UsageError with the line number for invalid TOML or an invalid value.
std::vector<ConfigEntry> read_config_file(const std::string & path);

} // namespace penelope
