#include "train/run_folder.h"

#include "base/atomic_file.h"
#include "base/error.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr const char * kFinalKey = "k_default"; // of the line a finished run ends with

// A second name for a file, in place of what has that name: at no moment is either name without a whole file.
void give_name(const std::string & from, const std::string & to) {
    const std::string between = to + ".new";
    std::error_code   ec, ignored;
    fs::remove(between, ignored);
    fs::create_hard_link(from, between, ec);
    if (ec) { // a file system without hard links
        fs::copy_file(from, between, fs::copy_options::overwrite_existing, ec);
    }
    if (!ec) {
        fs::rename(between, to, ec);
    }
    fs::remove(between, ignored); // rename leaves it when both were the same file already
    if (ec) {
        throw Error(ErrorKind::io, from + ": cannot be kept as " + to + ": " + ec.message());
    }
}

} // namespace

std::string RunFolder::file(const std::string & name) const {
    return (fs::path(path_) / name).string();
}

bool RunFolder::has(const std::string & file_path) const {
    return fs::exists(file_path);
}

bool RunFolder::holds_run() const {
    return fs::exists(config()) || has_checkpoint();
}

bool RunFolder::has_checkpoint() const {
    return fs::exists(last()) || checkpoints().size() > 1;
}

void RunFolder::check(bool resume, bool replace) const {
    if (resume && !has_checkpoint()) {
        throw Error(ErrorKind::not_found, path_ + ": holds no checkpoint to resume from",
                    "leave --resume out to start the run");
    }
    if (!resume && holds_run() && !replace) {
        throw Error(ErrorKind::io, path_ + ": holds a run already",
                    "continue it with --resume, replace it with --force, or choose another --out");
    }
}

FolderLock RunFolder::create(bool resume, bool replace) const {
    std::error_code ec;
    fs::create_directories(path_, ec);
    if (ec) {
        throw Error(ErrorKind::io, path_ + ": cannot be made: " + ec.message());
    }
    FolderLock lock(path_);
    check(resume, replace); // a run may have begun and ended since the caller looked
    if (!resume && holds_run()) {
        // Only what a run writes; whatever else lies in the folder is not ours.
        for (const std::string & old :
             { config(), metrics(), build(), model(), base(), backbone(), last(), previous(), best() }) {
            fs::remove(old, ec);
        }
        for (const auto & [update, old] : kept()) {
            fs::remove(old, ec);
        }
    }
    fs::create_directories(file("checkpoint"), ec);
    if (ec) {
        throw Error(ErrorKind::io, path_ + ": cannot be made: " + ec.message());
    }
    remove_leftovers(path_);
    remove_leftovers(file("checkpoint"));
    return lock;
}

void RunFolder::keep_previous() const {
    if (fs::exists(last())) {
        give_name(last(), previous());
    }
}

std::vector<std::pair<int64_t, std::string>> RunFolder::kept() const {
    static const std::regex                      name("update-([0-9]{1,18})\\.gguf");
    std::vector<std::pair<int64_t, std::string>> files;
    std::error_code                              ec;
    for (const fs::directory_entry & entry : fs::directory_iterator(file("checkpoint"), ec)) {
        const std::string found = entry.path().filename().string();
        if (std::smatch match; std::regex_match(found, match, name)) {
            files.emplace_back(std::stoll(match[1].str()), entry.path().string());
        }
    }
    std::sort(files.rbegin(), files.rend());
    return files;
}

std::vector<std::string> RunFolder::checkpoints() const {
    std::vector<std::string> files{ last() };
    if (fs::exists(previous())) {
        files.push_back(previous());
    }
    for (const auto & [update, path] : kept()) {
        files.push_back(path);
    }
    return files;
}

void RunFolder::keep_last(int64_t update, int64_t n) const {
    if (n == 0) {
        return;
    }
    give_name(last(), at(update));
    // A run that was taken back writes the later ones anew.
    int64_t n_seen = 0;
    for (const auto & [number, path] : kept()) {
        n_seen += number <= update;
        if (n_seen > n) {
            std::error_code ignored;
            fs::remove(path, ignored);
        }
    }
}

void RunFolder::return_to(const std::string & checkpoint) const {
    give_name(checkpoint, last());
}

void RunFolder::append_metrics(const OrderedJson & line) const {
    std::ofstream out(metrics(), std::ios::app);
    out << dump_json(line) << "\n";
    out.flush();
    if (!out) {
        throw Error(ErrorKind::io, metrics() + ": cannot be written", "is the disk full?");
    }
}

void RunFolder::cut_metrics(int64_t update) const {
    std::ifstream in(metrics());
    std::string   kept, line;
    while (std::getline(in, line)) {
        const Json parsed = Json::parse(line, nullptr, false); // the last line may have been cut off
        if (parsed.is_object() && parsed.contains("update") && parsed["update"] <= update &&
            !parsed.contains(kFinalKey)) {
            kept += line + "\n";
        }
    }
    write_file(metrics(), kept, true);
}

} // namespace penelope
