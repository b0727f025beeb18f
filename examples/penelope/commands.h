// The sub-commands. Adding one: a file cmd_NAME.cpp with its function, a declaration here, a row in commands.cpp, and
// the rows of its options in option_table.cpp.
#pragma once

#include "options.h"
#include "terminal.h"

#include <string>
#include <vector>

namespace penelope {

// Does the work and returns the exit code; throws Error: exit 2 for wrong usage, 1 otherwise.
using CommandFunction = int (*)(const Options & options, Terminal & terminal);

struct Command {
    const char *    name;
    const char *    summary;  // one line
    const char *    usage;    // what follows "penelope NAME", a line for each form
    const char *    notes;    // lines after the options, may be empty
    const char *    examples; // whole command lines, may be empty
    CommandFunction function;
};

// In the order of help.
const std::vector<Command> & command_table();
const Command *              find_command(std::string_view name);

} // namespace penelope
