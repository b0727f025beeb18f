#include "train/replaced_run.h"

#include "base/error.h"

#include <algorithm>
#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

fs::path aside(const fs::path & folder) {
    return folder / ".replaced";
}

void move_aside(const fs::path & file) {
    if (!fs::exists(fs::symlink_status(file))) {
        return;
    }
    const fs::path  folder = aside(file.parent_path());
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

bool ReplacedRun::is_there() const {
    return std::any_of(folders_.begin(), folders_.end(), [](const std::string & folder) {
        std::error_code ignored;
        return fs::exists(aside(folder), ignored);
    });
}

void ReplacedRun::set_aside(const std::vector<std::string> & files) const {
    move_aside(newest_);
    for (const std::string & file : files) {
        move_aside(file);
    }
}

void ReplacedRun::put_back() const noexcept {
    std::error_code ignored;
    const fs::path  newest = newest_;
    for (const std::string & folder : folders_) {
        for (fs::directory_iterator it(aside(folder), ignored), end; !ignored && it != end; it.increment(ignored)) {
            if (it->path().filename() != newest.filename()) {
                fs::rename(it->path(), fs::path(folder) / it->path().filename(), ignored);
            }
        }
    }
    fs::rename(aside(newest.parent_path()) / newest.filename(), newest, ignored);
    for (const std::string & folder : folders_) {
        fs::remove(aside(folder), ignored);
    }
}

void ReplacedRun::remove() const noexcept {
    std::error_code ignored;
    for (const std::string & folder : folders_) {
        fs::remove_all(aside(folder), ignored);
    }
}

} // namespace penelope
