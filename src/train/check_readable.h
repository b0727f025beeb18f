// Whether the disk gives all of a file. A bad sector is an error here; under a mapping it would end the process.
#pragma once

#include <string>

namespace penelope {

// Throws Error(format) naming the first byte that cannot be read. What is no file is left to whoever opens it.
void check_readable(const std::string & path);

} // namespace penelope
