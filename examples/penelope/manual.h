// What an installed program comes with, made from the tables of options and commands: manual pages and the completion of bash.
#pragma once

#include "commands.h"

#include <string>

namespace penelope {

// In man(7): penelope-COMMAND(1), or penelope(1) for none.
std::string manual_page(const Command * command);

std::string bash_completion();

} // namespace penelope
