// Parses argv into the options of one command. Flags take precedence over environment variables, those over the file
// of --config, and that over the defaults. Values are checked the same way whatever their source.
#pragma once

#include "base/error.h"
#include "option_table.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

// Wrong usage, exit code 2. The library throws this kind too, for values that are wrong for the loaded files.
class UsageError : public Error {
  public:
    explicit UsageError(const std::string & message, const std::string & advice = "")
        : Error(ErrorKind::usage, message, advice) {}
};

enum class OptionSource { fallback, config, environment, flag };

// The resolved options of one command. Asking for a name the command has no row for is a bug (std::logic_error).
class Options {
  public:
    Options() = default;
    explicit Options(std::string command) : command_(std::move(command)) {}

    const std::string & command() const { return command_; }

    bool         given(std::string_view name) const; // by flag, environment or config
    OptionSource source(std::string_view name) const;

    bool                     flag(std::string_view name) const;
    std::string              text(std::string_view name) const; // "" if not given and without default
    int64_t                  integer(std::string_view name) const;
    double                   number(std::string_view name) const;
    std::vector<std::string> list(std::string_view name) const;  // all values of a repeatable option
    std::vector<int>         steps(std::string_view name) const; // "0-2,5" -> 0 1 2 5; empty when not given

    // The value of an option that has to be given. Throws UsageError.
    std::string required(std::string_view name) const;

    // Checks the values and stores them unless a source of higher precedence has set the option. where: for error
    // messages, "PENELOPE_TEMP", "a.toml", "" for flags.
    void set(const OptionRow & row, const std::vector<std::string> & values, OptionSource source,
             const std::string & where);
    // As if it were given by flag, in place of what was given.
    void replace(std::string_view name, const std::string & value);

  private:
    struct Value {
        std::vector<std::string> values;
        OptionSource             source;
    };

    const OptionRow & row(std::string_view name) const;
    std::string       single(std::string_view name) const;

    std::string                               command_;
    std::map<std::string, Value, std::less<>> values_;
};

// args: without the program's name. Returns the options of the command named by args[0]; the name is "" when there is
// none (then only general options are there). Throws UsageError.
Options parse_options(const std::vector<std::string> & args, const std::vector<std::string> & commands);

// "true", "1", "on", "yes", or "false", "0", "off", "no"; nullopt for anything else.
std::optional<bool> parse_flag(std::string_view text);

// "--top-k K   sample from the K most likely tokens; 0: all (default 40)"
std::string option_help_line(const OptionRow & row);

} // namespace penelope
