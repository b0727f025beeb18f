// Training settings from names and texts, as flags of the program and keywords of the Python package give them.
#pragma once

#include "train/settings.h"

#include <string>
#include <utility>
#include <vector>

namespace penelope {

using NamedSetting = std::pair<std::string, std::string>; // name in the table of train/setting_table.h, value as text

// The defaults of the table with these on top, later ones last. Throws Error(usage) for an unknown name, naming the
// nearest one, and for a value that is not valid.
TrainSettings named_settings(const std::vector<NamedSetting> & given);

} // namespace penelope
