#include "train/run_folder.h"

#include "base/atomic_file.h"
#include "base/error.h"

#include <filesystem>
#include <fstream>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr const char * kFinalKey = "k_default"; // of the line a finished run ends with

// A second name for a file, in place of what has that name: at no moment is either name without a whole file. Where there are
// no hard links the file is moved, and until the next one is written there is one checkpoint only.
void give_name(const std::string & from, const std::string & to) {
    const std::string between = to + ".new";
    std::error_code   ec, ignored;
    fs::remove(between, ignored);
    fs::create_hard_link(from, between, ec);
    if (!ec) {
        fs::rename(between, to, ec);
        fs::remove(between, ignored); // rename leaves it when both were the same file already
    } else {
        fs::rename(from, to, ec);
    }
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
    return fs::exists(last()) || fs::exists(previous());
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

void RunFolder::return_to_previous() const {
    give_name(previous(), last());
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
