// Removes models from the cache.
#pragma once

#include "hub/cache.h"
#include "hub/repo_name.h"

#include <string>
#include <vector>

namespace penelope {

struct Removed {
    std::vector<std::string> files;     // in the repository
    uint64_t                 bytes = 0; // freed on the disk
};

// With a choice the files it means, else all GGUF files of the repository, in all its snapshots; then the blobs that
// nothing refers to any more, downloads that were not finished included. Files of other kinds stay. Throws
// Error(not_found) if nothing of it is in the cache, Error(io) if another process is downloading a file of it.
Removed remove_cached(const HubSettings & settings, const RepoName & name);

} // namespace penelope
