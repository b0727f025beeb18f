#include "hub/fetch.h"

#include "base/format.h"
#include "gguf/split_name.h"

#include <algorithm>

namespace penelope {

namespace fs = std::filesystem;

namespace {

// All parts of a split model have to be there. where: "the repository", "the cache".
void require_all_parts(const RepoName & name, const std::vector<std::string> & files, const std::string & where) {
    const auto split = parse_split_name(files.front());
    for (int number = 1; split && number <= split->count; number++) {
        const std::string part = split_path(split->prefix, number, split->count);
        if (std::find(files.begin(), files.end(), part) == files.end()) {
            throw Error(ErrorKind::not_found, name.repo + ": " + where + " has no " + in_quotes(part, 1024));
        }
    }
}

[[noreturn]] void no_such_choice(const RepoName & name, const std::vector<std::string> & paths) {
    const std::string choices = choices_text(paths);
    if (choices.empty()) {
        throw Error(ErrorKind::not_found, name.repo + ": has no GGUF file",
                    "look for a repository with GGUF files, or convert this one with penelope convert");
    }
    throw Error(ErrorKind::not_found, name.repo + ": has no " + in_quotes(name.choice), "it has " + choices);
}

FetchPlan plan_local(const HubSettings & settings, const RepoName & name) {
    const RepoCache          cache(settings, name.repo);
    std::vector<std::string> all;
    for (const std::string & commit : cache.commits()) {
        const std::vector<std::string> paths  = cache.files(commit);
        const std::vector<std::string> chosen = choose_files(paths, name.choice);
        if (!chosen.empty()) {
            require_all_parts(name, chosen, "the cache");
            FetchPlan plan{ name, commit, "", {}, {}, true };
            for (const std::string & path : chosen) {
                plan.files.push_back({ path, fs::file_size(cache.snapshot(commit) / path), "" });
            }
            return plan;
        }
        all.insert(all.end(), paths.begin(), paths.end());
    }
    const std::string choices = choices_text(all);
    throw Error(ErrorKind::not_found,
                repo_name_text(name) + ": not in the cache " + settings.cache.string() + ", and offline",
                choices.empty() ? "download it first: penelope pull " + repo_name_text(name)
                                : "the cache has " + choices + " of it");
}

FetchPlan plan_from(const HubSettings & settings, const RepoName & name, const RepoListing & listing) {
    std::vector<std::string> paths;
    for (const RepoFile & file : listing.files) {
        paths.push_back(file.path);
    }
    const std::vector<std::string> chosen = choose_files(paths, name.choice);
    if (chosen.empty()) {
        no_such_choice(name, paths);
    }
    require_all_parts(name, chosen, "the repository");
    const RepoCache cache(settings, name.repo);
    FetchPlan       plan{ name, listing.commit, listing.branch, {}, {}, false };
    for (const std::string & path : chosen) {
        const auto file = std::find_if(listing.files.begin(), listing.files.end(),
                                       [&](const RepoFile & entry) { return entry.path == path; });
        plan.files.push_back(*file);
        std::error_code ec;
        // A tool without symbolic links stores the file itself in the snapshot.
        const bool here = (fs::file_size(cache.blob(file->oid), ec) == file->size && !ec) ||
                          (fs::file_size(cache.snapshot(plan.commit) / path, ec) == file->size && !ec);
        if (!here) {
            plan.missing.push_back(*file);
        }
    }
    return plan;
}

} // namespace

uint64_t FetchPlan::bytes_missing() const {
    uint64_t bytes = 0;
    for (const RepoFile & file : missing) {
        bytes += file.size;
    }
    return bytes;
}

FetchPlan plan_fetch(const HubSettings & settings, const RepoName & name, const DownloadCallbacks & callbacks) {
    if (settings.offline) {
        return plan_local(settings, name);
    }
    try {
        return plan_from(settings, name, list_repo(settings, name.repo, callbacks.cancelled));
    } catch (const HubUnreachable & error) {
        FetchPlan plan;
        try {
            plan = plan_local(settings, name);
        } catch (const Error &) {
            throw error; // the cache does not help: the reason is the network
        }
        if (callbacks.message) {
            callbacks.message(error.message() + "; using the copy in the cache");
        }
        return plan;
    }
}

std::string fetch(const HubSettings & settings, const FetchPlan & plan, const DownloadCallbacks & callbacks) {
    const RepoCache cache(settings, plan.name.repo);
    for (const RepoFile & file : plan.missing) {
        download_file(settings, cache, plan.commit, file, callbacks);
    }
    for (const RepoFile & file : plan.files) {
        const fs::path path = cache.snapshot(plan.commit) / file.path;
        if (!plan.local && fs::exists(cache.blob(file.oid))) {
            cache.link(plan.commit, file.path, file.oid);
        }
        mark_used(path);
    }
    if (!plan.local && !plan.branch.empty()) {
        cache.write_ref(plan.branch, plan.commit);
    }
    return (cache.snapshot(plan.commit) / plan.files.front().path).string();
}

} // namespace penelope
