// Checksums of files that several ranks train on. Ranks may have files of their own, on other machines, or the same
// ones: a file is hashed by one rank, and the others that have the very same one take its result.
#pragma once

#include "train/collective.h"

#include <functional>
#include <string>
#include <vector>

namespace penelope {

// The SHA-256 of each path of this rank, "" for "". Called by all ranks with equally many paths. Throws Error on all of
// them where one cannot read a file.
std::vector<std::string> hash_files(Collective & ranks, const std::vector<std::string> & paths,
                                    const std::function<std::string(const std::string & path)> & hash);
std::vector<std::string> hash_files(Collective & ranks, const std::vector<std::string> & paths); // with sha256_file

} // namespace penelope
