#include "train/run_folder.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sync_path.h"
#include "base/temporary_name.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr const char * kFinalKey = "k_default";  // of the line a finished run ends with
constexpr const char * kScoreKey = "valid_loss"; // of the lines of validations
constexpr const char * kBetween  = ".new";       // ends what is about to get its name

// A second name for a file, in place of what has that name: at no moment is either name without a whole file. A
// symbolic link stands for the file it leads to.
void give_name(const std::string & from, const std::string & to) {
    const std::string between = to + kBetween;
    std::error_code   ec, ignored;
    fs::remove(between, ignored);
    const fs::path file = fs::canonical(from, ec);
    if (!ec) {
        fs::create_hard_link(file, between, ec);
        if (ec) { // a file system without hard links
            fs::copy_file(file, between, fs::copy_options::overwrite_existing, ec);
            ec = ec ? ec : std::error_code(sync_path(between), std::generic_category());
        }
    }
    if (!ec) {
        fs::rename(between, to, ec);
    }
    fs::remove(between, ignored); // rename leaves it when both were the same file already
    if (ec) {
        throw Error(ErrorKind::io, from + ": cannot be kept as " + to + ": " + ec.message());
    }
}

// "update-120.gguf" -> 120
std::optional<int64_t> update_in(const std::string & name) {
    constexpr std::string_view start = "update-", end = ".gguf";
    if (name.rfind(start, 0) != 0 || !ends_with(name, end) || name.size() < start.size() + end.size()) {
        return std::nullopt;
    }
    const std::string digits = name.substr(start.size(), name.size() - start.size() - end.size());
    if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) {
        return std::nullopt;
    }
    return std::stoll(digits);
}

} // namespace

std::string RunFolder::file(const std::string & name) const {
    return (fs::path(path_) / name).string();
}

std::string RunFolder::name() const {
    return absolute_directory(path_).filename().string();
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

ReplacedRun RunFolder::replaced() const {
    return ReplacedRun({ path_, file("checkpoint") }, last());
}

void RunFolder::settle_replaced() const noexcept {
    std::error_code ignored;
    if (fs::exists(last(), ignored)) {
        replaced().remove();
    } else {
        replaced().put_back();
    }
}

void RunFolder::recover() const {
    if (replaced().is_there()) {
        const FolderLock lock(path_);
        settle_replaced();
    }
}

std::unique_ptr<RunHold> RunFolder::create(bool resume, bool replace) const {
    std::error_code ec;
    fs::create_directories(file("checkpoint"), ec);
    if (ec) {
        throw Error(ErrorKind::io, path_ + ": cannot be made: " + ec.message());
    }
    FolderLock lock(path_);
    if (!lock.obstacle().empty()) {
        log_warning(path_ + ": cannot be locked: " + lock.obstacle() + "; let no other process write there");
    }
    if (replaced().is_there()) {
        settle_replaced();
    }
    check(resume, replace); // a run may have begun and ended since the caller looked
    auto hold = std::make_unique<RunHold>(*this, std::move(lock), !resume);
    if (!resume && holds_run()) {
        // Only what a run writes; whatever else lies in the folder is not ours.
        std::vector<std::string> files{ config(), metrics(), build(), model(), base(), backbone(), previous(), best() };
        for (const auto & [update, path] : kept()) {
            files.push_back(path);
        }
        replaced().set_aside(files);
    }
    remove_unfinished();
    resolve_links();
    return hold;
}

// What killed processes left half written.
void RunFolder::remove_unfinished() const {
    remove_leftovers(path_);
    remove_leftovers(file("checkpoint"));
    std::vector<fs::path> unnamed;
    std::error_code       ignored;
    for (const fs::directory_entry & entry : fs::directory_iterator(file("checkpoint"), ignored)) {
        if (ends_with(entry.path().string(), std::string(".gguf") + kBetween)) {
            unnamed.push_back(entry.path());
        }
    }
    for (const fs::path & path : unnamed) {
        fs::remove(path, ignored);
    }
}

// A checkpoint that was put in its place as a symbolic link becomes a file: what the link leads to would be written
// over.
void RunFolder::resolve_links() const {
    for (const std::string & checkpoint : { last(), previous(), best() }) {
        if (fs::is_symlink(checkpoint) && fs::exists(checkpoint)) {
            give_name(checkpoint, checkpoint);
        }
    }
}

RunHold::RunHold(RunFolder folder, FolderLock lock, bool is_new)
    : folder_(std::move(folder)), lock_(std::move(lock)), is_new_(is_new) {}

RunHold::~RunHold() {
    std::error_code ignored;
    if (!is_new_) {
        return;
    }
    if (!fs::exists(folder_.last(), ignored)) {
        for (const std::string & file : first_files_) {
            fs::remove(file, ignored);
        }
    }
    folder_.settle_replaced();
}

void RunFolder::keep_previous() const {
    if (fs::exists(last())) {
        give_name(last(), previous());
    }
}

std::vector<std::pair<int64_t, std::string>> RunFolder::kept() const {
    std::vector<std::pair<int64_t, std::string>> files;
    std::error_code                              ec;
    for (const fs::directory_entry & entry : fs::directory_iterator(file("checkpoint"), ec)) {
        if (const auto update = update_in(entry.path().filename().string())) {
            files.emplace_back(*update, entry.path().string());
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

void RunFolder::update_config(const std::string & toml) const {
    std::ifstream     in(config(), std::ios::binary);
    const std::string held{ std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>() };
    if (held != toml) {
        write_file(config(), toml, true);
    }
}

void RunFolder::append_metrics(const OrderedJson & line) const {
    std::ofstream out(metrics(), std::ios::app);
    out << dump_json(line) << "\n";
    out.flush();
    if (!out) {
        throw Error(ErrorKind::io, metrics() + ": cannot be written", "is the disk full?");
    }
}

void RunFolder::sync_metrics() const {
    const int code = sync_path(metrics());
    if (code != 0 && code != ENOENT) { // the first update makes it
        throw Error(ErrorKind::io, metrics() + ": cannot be brought to the disk: " + std::strerror(code));
    }
}

void RunFolder::cut_metrics(int64_t update, int64_t scored) const {
    if (!fs::exists(metrics())) {
        return;
    }
    std::ifstream in(metrics());
    std::string   kept, line;
    while (std::getline(in, line)) {
        const Json parsed = try_parse_json(line).value_or(Json()); // the last line may have been cut off
        if (parsed.is_object() && parsed.contains("update") && !parsed.contains(kFinalKey) &&
            parsed["update"] <= (parsed.contains(kScoreKey) ? scored : update)) {
            kept += line + "\n";
        }
    }
    if (!in.eof()) {
        throw Error(ErrorKind::io, metrics() + ": cannot be read: " + std::strerror(errno),
                    "make it readable, or move it away");
    }
    write_file(metrics(), kept, true);
}

} // namespace penelope
