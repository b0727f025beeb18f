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

constexpr const char * kFinalKey      = "k_default";  // key of the last line of a finished run
constexpr const char * kValidationKey = "valid_loss"; // key of validation lines
constexpr const char * kTempSuffix    = ".new";       // of temporary files before the rename

// Hard link or copy that atomically replaces `to`: both names have a complete file at every moment. Symbolic links are
// followed.
void link_or_copy(const std::string & from, const std::string & to) {
    const std::string temp_path = to + kTempSuffix;
    std::error_code   ec, ignored;
    fs::remove(temp_path, ignored);
    const fs::path file = fs::canonical(from, ec);
    if (!ec) {
        fs::create_hard_link(file, temp_path, ec);
        if (ec) { // a file system without hard links
            fs::copy_file(file, temp_path, fs::copy_options::overwrite_existing, ec);
            ec = ec ? ec : std::error_code(sync_path(temp_path), std::generic_category());
        }
    }
    if (!ec) {
        fs::rename(temp_path, to, ec);
    }
    fs::remove(temp_path, ignored); // rename leaves it when both were the same file already
    if (ec) {
        throw Error(ErrorKind::io, from + ": cannot link or copy to " + to + ": " + ec.message());
    }
}

// "update-120.gguf" -> 120
std::optional<int64_t> parse_update_number(const std::string & name) {
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

fs::path backup_dir(const fs::path & folder) {
    return folder / ".replaced";
}

void move_file_to_backup(const fs::path & file) {
    if (!fs::exists(fs::symlink_status(file))) {
        return;
    }
    const fs::path  folder = backup_dir(file.parent_path());
    std::error_code ec;
    fs::create_directory(folder, ec);
    if (!ec) {
        fs::rename(file, folder / file.filename(), ec);
    }
    if (ec) {
        throw Error(ErrorKind::io, file.string() + ": cannot back up the old run: rename failed: " + ec.message());
    }
}

} // namespace

bool RunBackup::has_backup() const {
    return std::any_of(folders_.begin(), folders_.end(), [](const std::string & folder) {
        std::error_code ignored;
        return fs::exists(backup_dir(folder), ignored);
    });
}

void RunBackup::move_to_backup(const std::vector<std::string> & files) const {
    move_file_to_backup(newest_);
    for (const std::string & file : files) {
        move_file_to_backup(file);
    }
}

void RunBackup::restore() const noexcept {
    std::error_code ignored;
    const fs::path  newest = newest_;
    for (const std::string & folder : folders_) {
        for (fs::directory_iterator it(backup_dir(folder), ignored), end; !ignored && it != end;
             it.increment(ignored)) {
            if (it->path().filename() != newest.filename()) {
                fs::rename(it->path(), fs::path(folder) / it->path().filename(), ignored);
            }
        }
    }
    fs::rename(backup_dir(newest.parent_path()) / newest.filename(), newest, ignored);
    for (const std::string & folder : folders_) {
        fs::remove(backup_dir(folder), ignored);
    }
}

void RunBackup::remove() const noexcept {
    std::error_code ignored;
    for (const std::string & folder : folders_) {
        fs::remove_all(backup_dir(folder), ignored);
    }
}

std::string RunFolder::file(const std::string & name) const {
    return (fs::path(path_) / name).string();
}

std::string RunFolder::name() const {
    return absolute_directory(path_).filename().string();
}

bool RunFolder::has(const std::string & file_path) const {
    return fs::exists(file_path);
}

bool RunFolder::has_run() const {
    return fs::exists(config()) || has_checkpoint();
}

bool RunFolder::has_checkpoint() const {
    return fs::exists(last()) || checkpoints().size() > 1;
}

void RunFolder::check(bool resume, bool replace) const {
    if (resume && !has_checkpoint()) {
        throw Error(ErrorKind::not_found, path_ + ": no checkpoint found", "leave --resume out to start the run");
    }
    if (!resume && has_run() && !replace) {
        throw Error(ErrorKind::io, path_ + ": already contains a run",
                    "continue it with --resume, replace it with --force, or choose another --out");
    }
}

RunBackup RunFolder::backup() const {
    return RunBackup({ path_, file("checkpoint") }, last());
}

void RunFolder::restore_or_discard_backup() const noexcept {
    std::error_code ignored;
    if (fs::exists(last(), ignored)) {
        backup().remove();
    } else {
        backup().restore();
    }
}

void RunFolder::recover() const {
    if (backup().has_backup()) {
        const DirectoryLock lock(path_);
        restore_or_discard_backup();
    }
}

std::unique_ptr<RunGuard> RunFolder::create(bool resume, bool replace) const {
    std::error_code ec;
    fs::create_directories(file("checkpoint"), ec);
    if (ec) {
        throw Error(ErrorKind::io, path_ + ": cannot create directory: " + ec.message());
    }
    DirectoryLock lock(path_);
    if (!lock.lock_error().empty()) {
        log_warning(path_ + ": cannot lock: " + lock.lock_error() + "; make sure no other process writes here");
    }
    if (backup().has_backup()) {
        restore_or_discard_backup();
    }
    check(resume, replace); // again under the lock: another run may have come and gone since
    auto hold = std::make_unique<RunGuard>(*this, std::move(lock), !resume);
    if (!resume && has_run()) {
        // Only files that a run writes; other files in the folder belong to the user.
        std::vector<std::string> files{ config(), metrics(), build(), model(), base(), backbone(), previous(), best() };
        for (const auto & [update, path] : numbered()) {
            files.push_back(path);
        }
        backup().move_to_backup(files);
    }
    remove_unfinished();
    resolve_links();
    return hold;
}

// Removes temporary files of killed processes.
void RunFolder::remove_unfinished() const {
    remove_stale_files(path_);
    remove_stale_files(file("checkpoint"));
    std::vector<fs::path> unnamed;
    std::error_code       ignored;
    for (const fs::directory_entry & entry : fs::directory_iterator(file("checkpoint"), ignored)) {
        if (ends_with(entry.path().string(), std::string(".gguf") + kTempSuffix)) {
            unnamed.push_back(entry.path());
        }
    }
    for (const fs::path & path : unnamed) {
        fs::remove(path, ignored);
    }
}

// Replaces checkpoints that are symbolic links by files, so that saving does not overwrite the target of the link.
void RunFolder::resolve_links() const {
    for (const std::string & checkpoint : { last(), previous(), best() }) {
        if (fs::is_symlink(checkpoint) && fs::exists(checkpoint)) {
            link_or_copy(checkpoint, checkpoint);
        }
    }
}

RunGuard::RunGuard(RunFolder folder, DirectoryLock lock, bool is_new)
    : folder_(std::move(folder)), lock_(std::move(lock)), is_new_(is_new) {}

RunGuard::~RunGuard() {
    std::error_code ignored;
    if (!is_new_) {
        return;
    }
    if (!fs::exists(folder_.last(), ignored)) {
        for (const std::string & file : files_to_remove_) {
            fs::remove(file, ignored);
        }
    }
    folder_.restore_or_discard_backup();
}

void RunFolder::save_previous() const {
    if (fs::exists(last())) {
        link_or_copy(last(), previous());
    }
}

std::vector<std::pair<int64_t, std::string>> RunFolder::numbered() const {
    std::vector<std::pair<int64_t, std::string>> files;
    std::error_code                              ec;
    for (const fs::directory_entry & entry : fs::directory_iterator(file("checkpoint"), ec)) {
        if (const auto update = parse_update_number(entry.path().filename().string())) {
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
    for (const auto & [update, path] : numbered()) {
        files.push_back(path);
    }
    return files;
}

void RunFolder::save_numbered(int64_t update, int64_t n) const {
    if (n == 0) {
        return;
    }
    link_or_copy(last(), at(update));
    // A run that went back to an older checkpoint overwrites the later ones, so they do not count.
    int64_t n_seen = 0;
    for (const auto & [number, path] : numbered()) {
        n_seen += number <= update;
        if (n_seen > n) {
            std::error_code ignored;
            fs::remove(path, ignored);
        }
    }
}

void RunFolder::restore_last(const std::string & checkpoint) const {
    link_or_copy(checkpoint, last());
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
        throw Error(ErrorKind::io, metrics() + ": write failed: " + std::strerror(errno), "is the disk full?");
    }
}

void RunFolder::sync_metrics() const {
    const int code = sync_path(metrics());
    if (code != 0 && code != ENOENT) { // the first update makes it
        throw Error(ErrorKind::io, metrics() + ": fsync failed: " + std::strerror(code));
    }
}

void RunFolder::cut_metrics(int64_t update, int64_t validated) const {
    if (!fs::exists(metrics())) {
        return;
    }
    std::ifstream in(metrics());
    std::string   kept, line;
    while (std::getline(in, line)) {
        const Json parsed = try_parse_json(line).value_or(Json()); // the last line may have been cut off
        if (parsed.is_object() && parsed.contains("update") && !parsed.contains(kFinalKey) &&
            parsed["update"] <= (parsed.contains(kValidationKey) ? validated : update)) {
            kept += line + "\n";
        }
    }
    if (!in.eof()) {
        throw Error(ErrorKind::io, metrics() + ": read failed: " + std::strerror(errno),
                    "make it readable, or move it away");
    }
    write_file(metrics(), kept, true);
}

} // namespace penelope
