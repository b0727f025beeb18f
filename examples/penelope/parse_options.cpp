// Reads the command line with CLI11, then the environment and the config file, into Options.
//
// CLI11 has only one-letter short flags and prefers the config file to the environment. So aliases are replaced by long
// names before CLI11 runs, and environment and config file are read here afterwards.
#include "base/log.h"
#include "base/nearest_name.h"
#include "config_file.h"
#include "options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>

namespace penelope {

namespace {

bool takes_value(const OptionRow & row) {
    return row.kind != OptionKind::flag && row.kind != OptionKind::argument;
}

// `_` equals `-` in long flags.
std::string with_dashes(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

const OptionRow * find_long(const std::vector<const OptionRow *> & rows, const std::string & spelling) {
    for (const OptionRow * row : rows) {
        if (row->kind == OptionKind::argument) {
            continue;
        }
        const std::vector<std::string> others = aliases_of(*row);
        if (spelling == "--" + std::string(row->name) ||
            std::find(others.begin(), others.end(), spelling) != others.end()) {
            return row;
        }
    }
    return nullptr;
}

// Throws an error that suggests the most similar known flag.
[[noreturn]] void unknown_flag(const std::string & flag, const std::string & command,
                               const std::vector<const OptionRow *> & rows) {
    std::vector<std::string> names;
    for (const OptionRow * row : rows) {
        if (row->kind != OptionKind::argument) {
            names.push_back("--" + std::string(row->name));
            for (const std::string & other : aliases_of(*row)) {
                names.push_back(other);
            }
        }
    }
    const std::string nearest = nearest_name(flag, names);
    std::string       hint    = foreign_flag_hint(flag);
    if (command.empty()) {
        hint = "the command comes first: penelope COMMAND [options]";
    }
    if (hint.empty() && !nearest.empty()) {
        hint = "did you mean " + nearest + "?";
    }
    if (hint.empty()) {
        hint = "'penelope " + command + " --help' lists the options";
    }
    throw UsageError(flag + ": unknown option" + (command.empty() ? "" : " of 'penelope " + command + "'"), hint);
}

// Long spellings in the table's form: "--top_k=5" -> "--top-k=5", "-ctk" -> "--kv-type", "--temperature" -> "--temp".
// Values stay untouched, even when they look like flags.
std::vector<std::string> normalize(const std::vector<std::string> & args, const std::string & command,
                                   const std::vector<const OptionRow *> & rows) {
    std::vector<std::string> out;
    for (size_t i = 0; i < args.size(); ++i) {
        const std::string & arg = args[i];
        if (arg == "--") {
            out.insert(out.end(), args.begin() + static_cast<ptrdiff_t>(i), args.end());
            break;
        }
        const bool is_long = arg.size() > 2 && arg.compare(0, 2, "--") == 0;
        const bool is_short =
            !is_long && arg.size() > 1 && arg[0] == '-' && std::isalpha(static_cast<unsigned char>(arg[1]));
        if (!is_long && !is_short) {
            out.push_back(arg);
            continue;
        }
        const size_t      equals   = arg.find('=');
        const std::string spelling = is_long ? with_dashes(arg.substr(0, equals)) : arg.substr(0, equals);
        const OptionRow * row      = find_long(rows, spelling);
        if (row == nullptr && is_long) {
            unknown_flag(arg.substr(0, equals), command, rows);
        }
        if (row == nullptr) {
            // CLI11 handles "-n5" and bundles such as "-qv" if the first letter is a known flag.
            const OptionRow * first = find_long(rows, arg.substr(0, 2));
            if (first == nullptr || !foreign_flag_hint(spelling).empty()) {
                unknown_flag(spelling, command, rows);
            }
            out.push_back(arg);
            continue;
        }
        const bool inline_value = equals != std::string::npos;
        if (inline_value && takes_value(*row)) {
            // As two arguments, so that an empty value is preserved.
            out.push_back("--" + std::string(row->name));
            out.push_back(arg.substr(equals + 1));
        } else {
            out.push_back("--" + std::string(row->name) + (inline_value ? arg.substr(equals) : ""));
            if (takes_value(*row)) {
                if (i + 1 == args.size()) {
                    throw UsageError("--" + std::string(row->name) + ": needs a value", option_help_line(*row));
                }
                out.push_back(args[++i]);
            }
        }
    }
    return out;
}

std::string cli11_names(const OptionRow & row) {
    if (row.kind == OptionKind::argument) {
        return row.name;
    }
    std::string names = "--" + std::string(row.name);
    for (const std::string & other : aliases_of(row)) {
        if (other.size() == 2) {
            names += "," + other;
        }
    }
    return names;
}

void read_flags(Options & options, const std::vector<std::string> & args, const std::vector<const OptionRow *> & rows) {
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();

    std::vector<CLI::Option *> handles;
    const OptionRow *          rest = nullptr; // takes all remaining arguments
    for (const OptionRow * row : rows) {
        if (row->kind == OptionKind::argument && row->repeats) {
            rest = row;
            handles.push_back(nullptr);
            continue;
        }
        CLI::Option * option =
            row->kind == OptionKind::flag ? app.add_flag(cli11_names(*row)) : app.add_option(cli11_names(*row));
        if (row->kind != OptionKind::flag) {
            // Do not split values at commas or brackets: prompts contain them.
            option->expected(1)->allow_extra_args(false);
        }
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        handles.push_back(option);
    }

    std::vector<std::string> reversed = normalize(args, options.command(), rows);
    std::reverse(reversed.begin(), reversed.end());
    try {
        app.parse(reversed);
    } catch (const CLI::ParseError & error) {
        throw UsageError(std::string("command line: ") + error.what());
    }
    std::vector<std::string> arguments;
    for (const std::string & extra : app.remaining()) {
        if (extra.size() > 1 && extra[0] == '-') {
            unknown_flag(extra, options.command(), rows);
        }
        if (rest != nullptr) {
            arguments.push_back(extra);
            continue;
        }
        throw UsageError("'" + extra + "': unexpected argument",
                         "'penelope " + options.command() + " --help' shows the usage");
    }
    for (size_t i = 0; i < rows.size(); ++i) {
        if (handles[i] != nullptr && handles[i]->count() > 0) {
            options.set(*rows[i], handles[i]->results(), OptionSource::flag, "");
        }
    }
    if (!arguments.empty()) {
        options.set(*rest, arguments, OptionSource::flag, "");
    }
}

bool has_environment(const OptionRow & row) {
    const std::string name = row.name;
    return row.kind != OptionKind::argument && name != "help" && name != "version" && name != "list-devices";
}

void read_environment(Options & options, const std::vector<const OptionRow *> & rows) {
    for (const OptionRow * row : rows) {
        const std::string name  = environment_name(*row);
        const char *      value = has_environment(*row) ? std::getenv(name.c_str()) : nullptr;
        if (value == nullptr || *value == '\0') {
            continue;
        }
        if (options.source(row->name) == OptionSource::flag) {
            log_debug("--" + std::string(row->name) + " on the command line overrides " + name);
        }
        options.set(*row, { value }, OptionSource::environment, name);
    }
}

void read_config(Options & options, const std::vector<const OptionRow *> & rows) {
    const std::string path = options.text("config");
    if (path.empty()) {
        return;
    }
    for (const ConfigEntry & entry : read_config_file(path)) {
        const std::string key   = with_dashes(entry.key);
        const OptionRow * found = nullptr;
        for (const OptionRow * row : rows) {
            if (key == row->name && has_environment(*row) && key != "config") {
                found = row;
            }
        }
        if (found != nullptr) {
            options.set(*found, entry.values, OptionSource::config, entry.where);
            continue;
        }
        std::vector<std::string> known;
        for (const OptionRow & row : option_table()) {
            if (has_environment(row)) {
                known.push_back(row.name);
            }
        }
        // A config file may be shared by several commands: options of other commands are ignored.
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            const std::string nearest = nearest_name(key, known);
            throw UsageError(entry.where + ": unknown key '" + entry.key + "'",
                             nearest.empty() ? "keys are long flag names" : "did you mean '" + nearest + "'?");
        }
        log_debug(entry.where + ": '" + entry.key + "' is not an option of 'penelope " + options.command() + "'");
    }
}

} // namespace

Options parse_options(const std::vector<std::string> & args, const std::vector<std::string> & commands) {
    std::vector<std::string> rest = args;
    std::string              command;
    if (!rest.empty() && !rest[0].empty() && rest[0][0] != '-') {
        command = rest[0];
        rest.erase(rest.begin());
        if (std::find(commands.begin(), commands.end(), command) == commands.end()) {
            const std::string nearest = nearest_name(command, commands);
            throw UsageError("'" + command + "': unknown command", nearest.empty()
                                                                       ? "'penelope --help' lists the commands"
                                                                       : "did you mean '" + nearest + "'?");
        }
    }

    Options                              options(command);
    const std::vector<const OptionRow *> rows = command_options(command);
    read_flags(options, rest, rows);
    read_environment(options, rows);
    read_config(options, rows);
    return options;
}

} // namespace penelope
