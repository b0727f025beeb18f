// The one table of options. Flags, environment variables, config keys, help texts and the option lists of the README
// all come from its rows, so a new option is one new row in option_table.cpp.
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
    argument, // positional; its name stands in upper case
};

// The headings of help, from the top of the page.
constexpr const char * option_groups_in_order[] = { "Arguments",  "Model",   "Prompt",    "Data",   "Training",
                                                    "Generation", "Serving", "Measuring", "Output", "General" };

struct OptionRow {
    const char * name;    // long name without dashes: the flag, the config key and, as PENELOPE_<NAME>, the variable
    const char * aliases; // other spellings with their dashes, separated by spaces: "-n --predict"
    OptionKind   kind;
    const char * value;    // stands for the value in help: "N"
    const char * fallback; // the default as text; "" when there is none or the text of `help` explains it
    const char *
        limits; // numbers: "0..8", either end may be missing; choice: "md|csv|json"; argument: "1" when required
    const char * group;    // heading in help, one of the above
    const char * commands; // separated by spaces; "*": all
    const char * help;
    bool         repeats = false; // may be given several times
};

// In the order of help.
const std::vector<OptionRow> & option_table();

// The rows of one command.
std::vector<const OptionRow *> command_options(std::string_view command);

std::vector<std::string> aliases_of(const OptionRow & row);
std::string              environment_name(const OptionRow & row); // "PENELOPE_TOP_K"

// Advice on flags other programs have and this one has under another name; "" when there is none. flag: as typed.
std::string foreign_flag_hint(std::string_view flag);

} // namespace penelope
