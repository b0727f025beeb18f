// Generates --help and the Markdown page from the tables of options and commands.
#pragma once

#include "commands.h"

#include <string>

namespace penelope {

// width: columns to fill; bold: emphasize headings.
std::string program_help(size_t width, bool bold);
std::string command_help(const Command & command, size_t width, bool bold);

// Everything as one Markdown page.
std::string help_markdown();

// "-n, --predict N", and what it does with its default, each as one line.
std::string option_spelling(const OptionRow & row);
std::string option_description(const OptionRow & row);

} // namespace penelope
