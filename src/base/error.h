// The one exception type of the project. Thrown where user data, files or the machine fail us; caught in main and at
// the border of the C API. Our own bugs are asserts, never Errors.
#pragma once

#include <stdexcept>
#include <string>

namespace penelope {

enum class ErrorKind { usage, not_found, format, unsupported, memory, device, io, cancelled };

// The lower-case name used in JSON output: "usage", "not_found", ...
const char * error_kind_name(ErrorKind kind);

class Error : public std::runtime_error {
  public:
    // message: "what: why", one line. hint: what the user can do, may be empty.
    Error(ErrorKind error_kind, const std::string & message, std::string error_hint = "")
        : std::runtime_error(message), kind(error_kind), hint(std::move(error_hint)) {}

    std::string message() const { return what(); }

    const ErrorKind   kind;
    const std::string hint;
};

} // namespace penelope
