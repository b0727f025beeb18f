// From argv to the options of one command. Values come from flags, then the environment, then the file of --config,
// then the table's default; every one passes the same checks, whichever way it came.
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

// Wrong usage, exit code 2. Errors of this kind also come from the library, where only the files can tell that a value is wrong.
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
    std::string              text(std::string_view name) const; // "" when neither given nor defaulted
    int64_t                  integer(std::string_view name) const;
    double                   number(std::string_view name) const;
    std::vector<std::string> list(std::string_view name) const;  // all values of a repeatable option
    std::vector<int>         steps(std::string_view name) const; // "0-2,5" -> 0 1 2 5; empty when not given

    // The value of an option that has to be given. Throws UsageError.
    std::string required(std::string_view name) const;

    // Checks the values against the row and takes them unless a stronger source has spoken. where stands in the error:
    // "PENELOPE_TEMP", "a.toml", "" for flags.
    void set(const OptionRow & row, const std::vector<std::string> & values, OptionSource source,
             const std::string & where);

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

// "true", "1", "on", "yes" and their opposites; nothing else is a flag's value.
std::optional<bool> parse_flag(std::string_view text);

// "--top-k K   sample among the K best tokens; 0: all (default 40)"
std::string option_help_line(const OptionRow & row);

// The name nearest to a misspelt one; "" when none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string> & candidates);

} // namespace penelope
