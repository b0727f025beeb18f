// TOML on toml++, with limits: its tables hold each other, and one inside another for every dot of a key would fill the
// stack.
#pragma once

#include "base/error.h"

#include <toml++/toml.h>

#include <string>

namespace penelope {

// The text of a file or a pipe. Throws Error(not_found) when there is none, and of the kind given when it is longer
// than 64 KiB.
std::string read_toml_text(const std::string & path, ErrorKind kind = ErrorKind::format);

// path: of messages, "PATH, line 3: why".
toml::table parse_toml(const std::string & text, const std::string & path, ErrorKind kind = ErrorKind::format);

} // namespace penelope
