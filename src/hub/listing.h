// What a repository of the hub holds: its commit and files, asked from the API.
#pragma once

#include "base/error.h"
#include "hub/settings.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

struct RepoFile {
    std::string path; // in the repository; checked: it stays inside of it
    uint64_t    size = 0;
    std::string oid; // SHA-256 of a file in LFS (64 digits), else git's SHA-1 of the blob (40)
};

struct RepoListing {
    std::string           repo;
    std::string           commit; // of the branch main, else of the first branch
    std::string           branch;
    std::vector<RepoFile> files;
};

// The server cannot be reached, or fails on its side: what is in the cache may do.
class HubUnreachable : public Error {
  public:
    using Error::Error;
};

// Throws HubUnreachable, and Error for everything a retry does not change: no such repository, no access, a listing
// that makes no sense.
RepoListing list_repo(const HubSettings & settings, const std::string & repo, const std::function<bool()> & cancelled);

// The error for a reply other than 2xx. what: "USER/REPO" or "USER/REPO/FILE".
[[noreturn]] void throw_status(const HubSettings & settings, const std::string & repo, const std::string & what,
                               long status, const std::string & message);

} // namespace penelope
