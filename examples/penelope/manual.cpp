#include "manual.h"

#include "base/format.h"
#include "help.h"

#include <algorithm>
#include <sstream>

namespace penelope {

namespace {

// Text as troff shows it: a dash is a minus, a line that starts with a dot is no request.
std::string troff(const std::string & text) {
    std::string out;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
            out += "\\&";
        }
        out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    }
    return out;
}

std::string header(const std::string & name, const std::string & summary) {
    return ".TH " + troff(name) + " 1 \"\" \"penelope " PENELOPE_VERSION "\"\n.SH NAME\n" + troff(name) + " \\- " +
           troff(summary) + "\n";
}

std::string options_section(const std::vector<const OptionRow *> & rows, bool general) {
    std::string out;
    for (const char * group : option_groups_in_order) {
        std::string entries;
        for (const OptionRow * row : rows) {
            if (std::string(row->group) == group && (std::string(group) == "General") == general) {
                entries += ".TP\n.B " + troff(option_spelling(*row)) + "\n" + troff(option_description(*row)) + "\n";
            }
        }
        out += entries.empty() ? "" : ".SS " + std::string(group) + "\n" + entries;
    }
    return out;
}

std::string example_section(const std::string & title, const std::string & text) {
    return text.empty() ? "" : ".SH " + title + "\n.nf\n" + troff(text) + ".fi\n";
}

constexpr const char * kCommon =
    ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted (128 and the number of the signal).\n"
    ".SH ENVIRONMENT\nEvery long option can be set by PENELOPE_<OPTION>: PENELOPE_TOP_K for \\-\\-top\\-k. Flags win "
    "over "
    "the environment, and that over the file of \\-\\-config.\n";

std::string program_page() {
    std::string out = header("penelope", "run and train a language model that thinks in latent steps") +
                      ".SH SYNOPSIS\n.B penelope\nCOMMAND [options]\n.SH COMMANDS\n";
    for (const Command & command : command_table()) {
        out += ".TP\n.BR penelope\\-" + std::string(command.name) + " (1)\n" + troff(command.summary) + "\n";
    }
    return out + ".SH OPTIONS\n" + options_section(command_options(""), true) + kCommon;
}

// The words after which a value of a fixed set follows: "  run:--color) words='auto always never' ;;"
std::string value_cases(const Command & command) {
    std::string out;
    for (const OptionRow * row : command_options(command.name)) {
        if (row->kind == OptionKind::choice) {
            std::string words = row->limits;
            std::replace(words.begin(), words.end(), '|', ' ');
            out += "    " + std::string(command.name) + ":--" + row->name + ") words='" + words + "' ;;\n";
        }
    }
    return out;
}

std::string option_words(const Command & command) {
    std::vector<std::string> words;
    for (const OptionRow * row : command_options(command.name)) {
        if (row->kind != OptionKind::argument) {
            words.push_back(std::string("--") + row->name);
            for (const std::string & other : aliases_of(*row)) {
                words.push_back(other);
            }
        }
    }
    return join(words, " ");
}

} // namespace

std::string manual_page(const Command * command) {
    if (!command) {
        return program_page();
    }
    std::string        out = header("penelope-" + std::string(command->name), command->summary) + ".SH SYNOPSIS\n";
    std::istringstream usage(command->usage);
    for (std::string line; std::getline(usage, line);) {
        out += ".B penelope " + std::string(command->name) + "\n" + troff(line) + "\n.br\n";
    }
    const std::vector<const OptionRow *> rows = command_options(command->name);
    out += ".SH DESCRIPTION\n" + troff(command->notes);
    out += ".SH OPTIONS\n" + options_section(rows, false) + options_section(rows, true);
    return out + example_section("EXAMPLES", command->examples) + kCommon + ".SH SEE ALSO\n.BR penelope (1)\n";
}

std::string bash_completion() {
    std::vector<std::string> names;
    std::string              values, options;
    for (const Command & command : command_table()) {
        names.emplace_back(command.name);
        values += value_cases(command);
        options += "      " + std::string(command.name) + ") words='" + option_words(command) + "' ;;\n";
    }
    return "# Completion of penelope's commands and options for bash.\n"
           "_penelope() {\n"
           "  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=\n"
           "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "    mapfile -t COMPREPLY < <(compgen -W 'help " +
           join(names, " ") +
           " --help --version --list-devices' -- \"$word\")\n"
           "    return\n"
           "  fi\n"
           "  case $command:${COMP_WORDS[COMP_CWORD - 1]} in\n" +
           values +
           "  esac\n"
           "  if [ -z \"$words\" ] && [[ $word == -* ]]; then\n"
           "    case $command in\n" +
           options +
           "    esac\n"
           "  fi\n"
           "  if [ -n \"$words\" ]; then\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
           "  else\n"
           "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
           "  fi\n"
           "}\n"
           "complete -o filenames -F _penelope penelope\n";
}

} // namespace penelope
