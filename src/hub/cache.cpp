#include "hub/cache.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hub_path.h"
#include "gguf/split_name.h"
#include "hub/repo_name.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

RepoCache::RepoCache(const HubSettings & settings, const std::string & repo)
    : repo_(repo), folder_(settings.cache / repo_folder_name(repo)),
      locks_(settings.cache / ".locks" / repo_folder_name(repo)) {}

std::vector<std::string> RepoCache::commits() const {
    std::vector<std::string> found;
    std::error_code          ignored;
    for (const auto & entry : fs::directory_iterator(folder_ / "snapshots", ignored)) {
        if (is_hex(entry.path().filename().string(), 40)) {
            found.push_back(entry.path().filename().string());
        }
    }
    std::sort(found.begin(), found.end());
    // Those of the branches first, main before all.
    std::vector<std::string> branches;
    for (const auto & entry : fs::directory_iterator(folder_ / "refs", ignored)) {
        std::ifstream file(entry.path());
        std::string   commit;
        if (std::getline(file, commit)) {
            branches.insert(entry.path().filename() == "main" ? branches.begin() : branches.end(), commit);
        }
    }
    const auto rank = [&](const std::string & commit) {
        return std::find(branches.begin(), branches.end(), commit) - branches.begin();
    };
    std::stable_sort(found.begin(), found.end(), [&](const auto & a, const auto & b) { return rank(a) < rank(b); });
    return found;
}

std::string RepoCache::commit() const {
    const std::vector<std::string> all = commits();
    return all.empty() ? "" : all.front();
}

std::vector<std::string> RepoCache::files(const std::string & commit) const {
    std::vector<std::string> found;
    std::error_code          ignored;
    for (const auto & entry : fs::recursive_directory_iterator(snapshot(commit), ignored)) {
        if (entry.is_regular_file(ignored)) { // follows the link
            found.push_back(entry.path().lexically_relative(snapshot(commit)).generic_string());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

void RepoCache::write_ref(const std::string & branch, const std::string & commit) const {
    fs::create_directories(folder_ / "refs");
    write_file((folder_ / "refs" / branch).string(), commit, true);
}

void RepoCache::link(const std::string & commit, const std::string & file, const std::string & oid) const {
    const fs::path path   = snapshot(commit) / file;
    const fs::path target = fs::path(blob(oid)).lexically_relative(path.parent_path());
    fs::create_directories(path.parent_path());
    std::error_code ignored;
    if (fs::read_symlink(path, ignored) == target) {
        return;
    }
    // Made beside it and renamed, so that the name exists at every moment.
    const fs::path temporary = path.string() + "." + std::to_string(::getpid()) + ".new";
    fs::remove(temporary, ignored);
    fs::create_symlink(target, temporary);
    fs::rename(temporary, path);
}

void mark_used(const fs::path & file) {
    const timespec times[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };
    ::utimensat(AT_FDCWD, file.c_str(), times, 0);
}

namespace {

void add_models(const RepoCache & cache, std::vector<CachedModel> & out) {
    const size_t          first_new = out.size();
    std::set<std::string> seen;
    for (const std::string & commit : cache.commits()) {
        const std::vector<std::string> files = cache.files(commit);
        for (const std::string & file : files) {
            const auto        split = parse_split_name(file);
            const std::string group = split ? split_path(split->prefix, 1, split->count) : file;
            if (!ends_with(file, ".gguf") || !seen.insert(group).second) {
                continue;
            }
            CachedModel model;
            model.repo     = cache.repo();
            model.quant    = quant_of(file);
            model.files    = parts_of(file, files);
            model.path     = (cache.snapshot(commit) / model.files.front()).string();
            model.complete = !split || int(model.files.size()) == split->count;
            for (const std::string & part : model.files) {
                struct stat info {};
                if (::stat((cache.snapshot(commit) / part).c_str(), &info) == 0) {
                    model.size += uint64_t(info.st_size);
                    model.last_used = std::max(model.last_used, info.st_atim.tv_sec);
                }
            }
            out.push_back(std::move(model));
        }
    }
    std::map<std::string, int> n_of_quant;
    for (size_t i = first_new; i < out.size(); i++) {
        n_of_quant[out[i].quant]++;
    }
    for (size_t i = first_new; i < out.size(); i++) {
        const bool by_quant = !out[i].quant.empty() && n_of_quant[out[i].quant] == 1 && is_model_file(out[i].files[0]);
        out[i].name         = out[i].repo + ":" + (by_quant ? out[i].quant : out[i].files.front());
    }
}

} // namespace

std::vector<CachedModel> list_cached_models(const HubSettings & settings) {
    std::vector<CachedModel> models;
    std::error_code          ignored;
    for (const auto & entry : fs::directory_iterator(settings.cache, ignored)) {
        if (const auto repo = repo_of_folder(entry.path().filename().string())) {
            add_models(RepoCache(settings, *repo), models);
        }
    }
    std::sort(models.begin(), models.end(), [](const auto & a, const auto & b) { return a.name < b.name; });
    return models;
}

} // namespace penelope
