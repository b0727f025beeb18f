// Generates the manual pages and the bash completion from the tables of options and commands.
#pragma once

#include "commands.h"

#include <string>

namespace penelope {

// In man(7): penelope-COMMAND(1), or penelope(1) for none.
std::string manual_page(const Command * command);

std::string bash_completion();

} // namespace penelope
