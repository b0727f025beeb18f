// A copy of a sidecar or bundle with another threshold for -K auto.
#pragma once

#include <string>

namespace penelope {

// Throws Error(format) when `path` is neither. force: replaces `out`.
void write_settled(const std::string & path, float settled, const std::string & out, bool force);

} // namespace penelope
