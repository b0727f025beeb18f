// The file of --config: TOML whose keys are long flag names and whose values are strings, numbers, booleans or arrays
// of them. The key include names another such file, relative to the one it stands in; its keys hold unless this file
// has them too.
#pragma once

#include <string>
#include <vector>

namespace penelope {

struct ConfigEntry {
    std::string              key;
    std::vector<std::string> values; // as a flag would spell them
    std::string              where;  // "a.toml, line 3"
};

// Each key once. Throws UsageError for what TOML or these rules do not allow, naming the line.
std::vector<ConfigEntry> read_config_file(const std::string & path);

} // namespace penelope
