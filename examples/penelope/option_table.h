// The table of command-line options. Flags, environment variables, config keys, --help, manual pages and
// examples/penelope/README.md are all generated from its rows: a new option is one new row in option_table.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penelope {

enum class OptionKind {
    flag, // on or off
    integer,
    number,
    text,
    choice,   // one of the words in `limits`
    steps,    // "5", "0-6", "1,3,5"
    argument, // positional; shown in upper case
};

// The headings of help, from the top of the page.
constexpr const char * option_groups_in_order[] = { "Arguments",  "Model",   "Prompt",    "Data",   "Training",
                                                    "Generation", "Serving", "Measuring", "Output", "General" };

struct OptionRow {
    const char * name;    // long name without dashes: the flag, the config key and, as PENELOPE_<NAME>, the variable
    const char * aliases; // other spellings with their dashes, separated by spaces: "-n --predict"
    OptionKind   kind;
    const char * value;    // placeholder of the value in help: "N"
    const char * fallback; // default value as text; "" if there is none or `help` explains it
    const char * limits;   // numbers: "0..8", either end optional; choice: "md|csv|json"; argument: "1" if required
    const char * group;    // heading in help, one of the above
    const char * commands; // separated by spaces; "*": all
    const char * help;
    bool         repeats = false; // may be given several times
};

// In the order of help.
const std::vector<OptionRow> & option_table();

// The rows of one command.
std::vector<const OptionRow *> command_options(std::string_view command);
bool                           has_option(std::string_view command, std::string_view name);

std::vector<std::string> aliases_of(const OptionRow & row);
std::string              environment_name(const OptionRow & row); // "PENELOPE_TOP_K"

// Hint for a flag of llama.cpp that has another name here; "" if there is none. flag: as typed.
std::string foreign_flag_hint(std::string_view flag);

} // namespace penelope
