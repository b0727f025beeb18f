// SHA-256 of the input files when several ranks train. Ranks may share a file system or have their own copies: a shared
// file is hashed by one rank only and the others take its result.
#pragma once

#include "train/collective.h"

#include <functional>
#include <string>
#include <vector>

namespace penelope {

// SHA-256 of each path of this rank; "" for an empty path. All ranks call it with equally many paths. If a rank cannot
// read a file, all ranks throw.
std::vector<std::string> hash_files(Collective & ranks, const std::vector<std::string> & paths,
                                    const std::function<std::string(const std::string & path)> & hash);
std::vector<std::string> hash_files(Collective &                     ranks,
                                    const std::vector<std::string> & paths); // of all parts of a split model

} // namespace penelope
