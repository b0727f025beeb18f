#include "train/run_folder.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "train/checkpoint.h"

#include <filesystem>
#include <fstream>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr const char * kFinalKey = "k_default"; // of the line a finished run ends with

} // namespace

std::string RunFolder::file(const std::string & name) const {
    return (fs::path(path_) / name).string();
}

bool RunFolder::has(const std::string & file_path) const {
    return fs::exists(file_path);
}

bool RunFolder::holds_run() const {
    return fs::exists(config()) || fs::exists(last());
}

void RunFolder::check(bool resume, bool replace) const {
    if (resume && !fs::exists(last())) {
        throw Error(ErrorKind::not_found, path_ + ": holds no checkpoint to resume from",
                    "leave --resume out to start the run");
    }
    if (!resume && holds_run() && !replace) {
        throw Error(ErrorKind::io, path_ + ": holds a run already",
                    "continue it with --resume, replace it with --force, or choose another --out");
    }
}

void RunFolder::create(bool resume) const {
    std::error_code ec;
    if (!resume && holds_run()) {
        // Only what a run writes; whatever else lies in the folder is not ours.
        for (const std::string & old : { config(), metrics(), build(), model(), base(), backbone(), last(), best() }) {
            fs::remove(old, ec);
        }
    }
    fs::create_directories(fs::path(path_) / "checkpoint", ec);
    if (ec) {
        throw Error(ErrorKind::io, path_ + ": cannot be made: " + ec.message());
    }
    remove_leftovers(path_);
    remove_leftovers(file("checkpoint"));
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
