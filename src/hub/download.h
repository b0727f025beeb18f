// Downloads one file of a repository into the cache: goes on where an earlier attempt stopped, checks size and
// checksum, and renames the file into place only then.
#pragma once

#include "hub/cache.h"
#include "hub/listing.h"

#include <functional>
#include <string>

namespace penelope {

struct DownloadProgress {
    std::string file;
    uint64_t    done = 0, total = 0; // bytes of this file
    uint64_t    resumed_at = 0;      // bytes that were there already
};

struct DownloadCallbacks {
    std::function<void(const DownloadProgress &)> progress; // often
    std::function<void(const std::string &)>      message;  // rarely: a line for people
    std::function<bool()>                         cancelled;
};

// Afterwards the blob is in the cache. Throws HubUnreachable when the connection fails again and again, and Error for a
// full disk, another checksum and everything else; what has come is kept for the next attempt, unless it is wrong.
void download_file(const HubSettings & settings, const RepoCache & cache, const std::string & commit,
                   const RepoFile & file, const DownloadCallbacks & callbacks);

} // namespace penelope
