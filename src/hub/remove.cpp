#include "hub/remove.h"

#include "base/error.h"
#include "base/format.h"
#include "hub/blob_lock.h"

#include <algorithm>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kIncomplete = ".incomplete";

// Names of the blobs that links of any snapshot lead to.
std::set<std::string> referenced_blobs(const RepoCache & cache) {
    std::set<std::string> names;
    std::error_code       ec;
    for (const auto & entry : fs::recursive_directory_iterator(cache.folder() / "snapshots", ec)) {
        if (entry.is_symlink()) {
            names.insert(fs::read_symlink(entry.path()).filename().string());
        }
    }
    return names;
}

std::vector<fs::path> unreferenced_blobs(const RepoCache & cache) {
    const std::set<std::string> used = referenced_blobs(cache);
    std::vector<fs::path>       blobs;
    std::error_code             ec;
    for (const auto & entry : fs::directory_iterator(cache.folder() / "blobs", ec)) {
        if (used.count(entry.path().filename().string()) == 0) {
            blobs.push_back(entry.path());
        }
    }
    return blobs;
}

std::string oid_of(const fs::path & blob) {
    const std::string name = blob.filename().string();
    return ends_with(name, kIncomplete) ? name.substr(0, name.size() - kIncomplete.size()) : name;
}

void remove_empty_folders(const fs::path & folder) {
    std::error_code       ec;
    std::vector<fs::path> inside;
    for (const auto & entry : fs::directory_iterator(folder, ec)) {
        if (entry.is_directory() && !entry.is_symlink()) {
            inside.push_back(entry.path());
        }
    }
    for (const fs::path & path : inside) {
        remove_empty_folders(path);
    }
    fs::remove(folder, ec); // refuses a folder that is not empty
}

} // namespace

Removed remove_cached(const HubSettings & settings, const RepoName & name) {
    const RepoCache       cache(settings, name.repo);
    Removed               removed;
    std::set<std::string> files;
    for (const std::string & commit : cache.commits()) {
        const std::vector<std::string> paths = cache.files(commit);
        if (name.choice.empty()) {
            std::copy_if(paths.begin(), paths.end(), std::inserter(files, files.end()),
                         [](const std::string & path) { return ends_with(path, ".gguf"); });
        } else {
            const std::vector<std::string> chosen = choose_files(paths, name.choice);
            files.insert(chosen.begin(), chosen.end());
        }
    }
    // Without files there may still be a download that was never finished.
    std::error_code ec;
    if (files.empty() && (!name.choice.empty() || unreferenced_blobs(cache).empty())) {
        throw Error(ErrorKind::not_found, repo_name_text(name) + ": not in the cache " + settings.cache.string(),
                    "penelope list shows what is");
    }
    for (const std::string & commit : cache.commits()) {
        for (const std::string & file : files) {
            const fs::path path = cache.snapshot(commit) / file;
            removed.bytes += fs::is_regular_file(fs::symlink_status(path)) ? fs::file_size(path) : 0;
            fs::remove(path);
        }
    }
    removed.files.assign(files.begin(), files.end());
    bool busy = false;
    for (const fs::path & blob : unreferenced_blobs(cache)) {
        const BlobLock lock(cache.lock_file(oid_of(blob)));
        busy = busy || !lock.held();
        if (lock.held()) {
            const uint64_t size = fs::file_size(blob, ec);
            removed.bytes += fs::remove(blob, ec) ? size : 0;
        }
    }
    remove_empty_folders(cache.folder() / "snapshots");
    if (!fs::exists(cache.folder() / "snapshots") && !busy) {
        fs::remove_all(cache.folder());
    }
    if (busy && files.empty()) {
        throw Error(ErrorKind::io, name.repo + ": another process is downloading a file of it",
                    "wait until it has ended");
    }
    return removed;
}

} // namespace penelope
