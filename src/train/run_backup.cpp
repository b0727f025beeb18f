#include "train/run_backup.h"

#include "base/error.h"

#include <algorithm>
#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

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
        throw Error(ErrorKind::io, file.string() + ": cannot be set aside for the new run: " + ec.message());
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

} // namespace penelope
