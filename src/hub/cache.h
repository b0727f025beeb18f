// The cache of downloaded files, in the layout of huggingface_hub so that both share them:
//   CACHE/models--USER--REPO/blobs/OID             the data; OID.incomplete while it comes
//                           /snapshots/COMMIT/FILE a symbolic link to a blob
//                           /refs/BRANCH           the commit
//   CACHE/.locks/models--USER--REPO/OID.lock       held by flock while a blob is written or removed
#pragma once

#include "hub/settings.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

namespace penelope {

class RepoCache {
  public:
    RepoCache(const HubSettings & settings, const std::string & repo);

    const std::string &   repo() const { return repo_; }
    std::filesystem::path folder() const { return folder_; }
    std::filesystem::path blob(const std::string & oid) const { return folder_ / "blobs" / oid; }
    std::filesystem::path snapshot(const std::string & commit) const { return folder_ / "snapshots" / commit; }
    std::filesystem::path lock_file(const std::string & oid) const { return locks_ / (oid + ".lock"); }

    // The commit of refs/main, else of another branch, else any that has a snapshot; "" if nothing is stored.
    std::string commit() const;
    // All commits that have a snapshot, that of commit() first.
    std::vector<std::string> commits() const;
    // Paths of the files of a snapshot, relative to it and sorted. Links to blobs that are gone are left out.
    std::vector<std::string> files(const std::string & commit) const;

    void write_ref(const std::string & branch, const std::string & commit) const;
    // snapshots/COMMIT/FILE -> blobs/OID. Replaces a link that leads elsewhere.
    void link(const std::string & commit, const std::string & file, const std::string & oid) const;

  private:
    std::string           repo_;
    std::filesystem::path folder_, locks_;
};

// A model or adapter in the cache, all parts together.
struct CachedModel {
    std::string name; // what -hf takes: "USER/REPO:Q8_0", or "USER/REPO:FILE" where the quant is not enough
    std::string repo;
    std::string quant;              // may be empty
    std::string path;               // of the first part
    std::vector<std::string> files; // in the repository
    uint64_t                 size      = 0;
    std::time_t              last_used = 0;
    bool                     complete  = true; // no part is missing
};

// Sorted by name.
std::vector<CachedModel> list_cached_models(const HubSettings & settings);

// Sets the time of last access, because most file systems are mounted so that reading does not.
void mark_used(const std::filesystem::path & file);

} // namespace penelope
