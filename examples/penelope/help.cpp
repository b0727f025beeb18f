#include "help.h"

#include <algorithm>
#include <sstream>

namespace penelope {

namespace {

std::string heading(const std::string & text, bool bold) {
    return bold ? "\033[1m" + text + "\033[0m\n" : text + "\n";
}

// "-n, --predict N", "-ctk, --kv-type TYPE"; long aliases are not shown.
std::string spelling(const OptionRow & row) {
    if (row.kind == OptionKind::argument) {
        return std::string(row.value) + (row.repeats ? "..." : "");
    }
    std::string shorts;
    for (const std::string & other : aliases_of(row)) {
        if (other.compare(0, 2, "--") != 0) {
            shorts += other + ", ";
        }
    }
    return (shorts.empty() ? "    " : shorts) + "--" + row.name + (*row.value != '\0' ? " " : "") + row.value;
}

constexpr char hard_space = '\1'; // where a line is not broken

// Ends with hard spaces in it.
std::string description(const OptionRow & row) {
    std::string text = row.help;
    if (row.kind == OptionKind::choice) {
        std::string choices = row.limits;
        std::replace(choices.begin(), choices.end(), '|', ' ');
        std::istringstream in(choices);
        std::string        list;
        for (std::string word; in >> word;) {
            list += (list.empty() ? "" : ", ") + word;
        }
        if (text.find(':') == std::string::npos) {
            text += ": " + list;
        }
    }
    if (*row.fallback != '\0') {
        text += std::string(" (default") + hard_space + row.fallback + ")";
    }
    return text;
}

std::string soft(std::string text) {
    std::replace(text.begin(), text.end(), hard_space, ' ');
    return text;
}

// Text in lines of at most `width` columns, each after the first indented.
std::string wrap(const std::string & text, size_t width, size_t indent) {
    std::istringstream in(text);
    std::string        out;
    size_t             column = 0;
    for (std::string word; in >> word;) {
        if (column > 0 && indent + column + 1 + word.size() > width) {
            out += "\n" + std::string(indent, ' ');
            column = 0;
        } else if (column > 0) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
    }
    return soft(out);
}

std::string entry(const std::string & left, const std::string & right, size_t column, size_t width) {
    std::string out = "  " + left;
    if (out.size() + 2 > column) {
        out += "\n" + std::string(column, ' ');
    } else {
        out += std::string(column - out.size(), ' ');
    }
    return out + wrap(right, width, column) + "\n";
}

// The headings the rows need, in the order of a page.
std::vector<std::string> groups_of(const std::vector<const OptionRow *> & rows) {
    std::vector<std::string> groups;
    for (const char * group : option_groups_in_order) {
        if (std::any_of(rows.begin(), rows.end(),
                        [group](const OptionRow * row) { return std::string(row->group) == group; })) {
            groups.emplace_back(group);
        }
    }
    return groups;
}

std::string option_groups(const std::vector<const OptionRow *> & rows, size_t width, bool bold) {
    constexpr size_t column = 30;
    std::string      out;
    for (const std::string & group : groups_of(rows)) {
        out += "\n" + heading(group, bold);
        for (const OptionRow * row : rows) {
            if (row->group == group) {
                out += entry(spelling(*row), description(*row), column, width);
            }
        }
    }
    return out;
}

std::vector<std::string> lines_of(const char * text) {
    std::istringstream       in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::string escape_markdown(const std::string & text) {
    std::string out;
    for (const char c : text) {
        if (c == '|' || c == '<' || c == '*' || c == '_') {
            out += '\\';
        }
        out += c;
    }
    return out;
}

// Inside backticks only the bar of the table needs a backslash.
std::string in_code_cell(std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
        text.insert(at, "\\");
    }
    return text;
}

std::string without_padding(const std::string & text) {
    return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

} // namespace

std::string option_spelling(const OptionRow & row) {
    return without_padding(spelling(row));
}

std::string option_description(const OptionRow & row) {
    return soft(description(row));
}

std::string option_help_line(const OptionRow & row) {
    return option_spelling(row) + "  " + option_description(row);
}

std::string program_help(size_t width, bool bold) {
    std::string out =
        "penelope runs and trains Penelope, a language model that thinks in latent steps, on GGUF backbones.\n\n"
        "usage: penelope COMMAND [options]\n\n" +
        heading("Commands", bold);
    for (const Command & command : command_table()) {
        out += entry(command.name, command.summary, 13, width);
    }
    out += option_groups(command_options(""), width, bold);
    out += "\n'penelope COMMAND --help' shows the options of a command. Every long option can also be set by the "
           "environment\n"
           "variable PENELOPE_<OPTION> and in the file of --config.\n";
    return out;
}

std::string command_help(const Command & command, size_t width, bool bold) {
    std::string out   = std::string(command.summary) + "\n\n";
    bool        first = true;
    for (const std::string & line : lines_of(command.usage)) {
        out += (first ? "usage: penelope " : "       penelope ") + std::string(command.name) + " " + line + "\n";
        first = false;
    }
    out += option_groups(command_options(command.name), width, bold);
    const auto section = [&](const char * title, const char * text) {
        if (*text != '\0') {
            out += "\n" + heading(title, bold);
        }
        for (const std::string & line : lines_of(text)) {
            out += "  " + line + "\n";
        }
    };
    section("Notes", command.notes);
    section("Examples", command.examples);
    return out;
}

std::string help_markdown() {
    std::string out =
        "# Commands and options of `penelope`\n\n"
        "Made by `penelope help --markdown`. Values come from the flag, else from the environment variable\n"
        "`PENELOPE_<OPTION>` (`--top-k`: `PENELOPE_TOP_K`), else from the file of `--config` (`top-k = 40`), else\n"
        "from the default. `_` and `-` are the same in long flags.\n";
    const auto section = [&out](const std::vector<const OptionRow *> & rows, bool general) {
        out += "\n| option | meaning |\n|---|---|\n";
        for (const OptionRow * row : rows) {
            if ((std::string(row->group) == "General") == general) {
                out += "| `" + in_code_cell(without_padding(spelling(*row))) + "` | " +
                       escape_markdown(soft(description(*row))) + " |\n";
            }
        }
    };
    for (const Command & command : command_table()) {
        out += "\n## penelope " + std::string(command.name) + "\n\n" + command.summary + "\n\n```\n";
        for (const std::string & line : lines_of(command.usage)) {
            out += "penelope " + std::string(command.name) + " " + line + "\n";
        }
        out += "```\n";
        section(command_options(command.name), false);
        if (*command.notes != '\0') {
            out += "\n" + escape_markdown(command.notes);
        }
        if (*command.examples != '\0') {
            out += "\n```\n" + std::string(command.examples) + "```\n";
        }
    }
    out += "\n## Every command\n";
    section(command_options(""), true);
    return out;
}

} // namespace penelope
