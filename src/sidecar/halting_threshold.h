// A copy of a sidecar or bundle with another threshold for -K auto.
#pragma once

#include <string>

namespace penelope {

// Throws Error(format) when `path` is neither. force: replaces `out`.
void write_halt_cosine(const std::string & path, float halt_cosine, const std::string & out, bool force);

} // namespace penelope
