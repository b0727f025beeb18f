// From the name of a model to its files on this machine: what has to be downloaded, and the download.
#pragma once

#include "hub/download.h"
#include "hub/repo_name.h"

#include <string>
#include <vector>

namespace penelope {

struct FetchPlan {
    RepoName              name;
    std::string           commit, branch;
    std::vector<RepoFile> files;         // one, or all parts in order
    std::vector<RepoFile> missing;       // of these, what is not in the cache
    bool                  local = false; // the server was not asked: commit and files are those of the cache

    uint64_t bytes_missing() const;
};

// Asks the server, or the cache alone with settings.offline. If the server cannot be reached and the cache has all
// files, they are taken and a message says so. Throws Error if there is no such model.
FetchPlan plan_fetch(const HubSettings & settings, const RepoName & name, const DownloadCallbacks & callbacks);

// Downloads what is missing and returns the path of the first file.
std::string fetch(const HubSettings & settings, const FetchPlan & plan, const DownloadCallbacks & callbacks);

} // namespace penelope
