#include "base/output_dir.h"

#include "base/error.h"
#include "base/format.h"
#include "base/path.h"
#include "base/sync_path.h"
#include "base/temporary_name.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr int kAttempts = 100; // names that may be taken

[[noreturn]] void fail(const std::string & path, const std::string & what, const std::error_code & code) {
    throw Error(ErrorKind::io, in_quotes(path, 1024) + ": " + what + ": " + code.message());
}

void sync_names(const fs::path & directory) {
    if (const int code = sync_path(directory.string())) {
        fail(directory.string(), "cannot bring the names in it to the disk", { code, std::generic_category() });
    }
}

} // namespace

OutputDir::OutputDir(const std::string & path, bool force) : path_(path), force_(force) {
    const fs::path clean = absolute_directory(path);
    if (fs::exists(clean) && !fs::is_directory(clean)) {
        throw Error(ErrorKind::io, in_quotes(path, 1024) + ": exists and is not a directory", "choose another path");
    }
    if (!fs::is_directory(clean.parent_path())) {
        throw Error(ErrorKind::not_found, in_quotes(path, 1024) + ": its parent directory does not exist",
                    "create the directory first");
    }
    path_ = clean.string();
    remove_stale_files_once(clean.parent_path().string());
    for (int attempt = 0; !create(); attempt++) {
        if (attempt == kAttempts) {
            fail(path_, "cannot create a directory beside it", std::make_error_code(std::errc::file_exists));
        }
    }
    temporary_.emplace_back(temp_);
}

OutputDir::~OutputDir() {
    std::error_code ignored;
    fs::remove_all(temp_, ignored);
}

// A directory under the next name. False when that is taken, or when another process took the new directory for a
// leftover before it was locked.
bool OutputDir::create() {
    temp_ = next_temporary_name(fs::path(path_).parent_path().string());
    if (::mkdir(temp_.c_str(), 0777) != 0) {
        if (errno != EEXIST) {
            fail(path_, "cannot create a directory beside it", { errno, std::generic_category() });
        }
        return false;
    }
    try {
        lock_ = DirectoryLock(temp_);
    } catch (const Error &) {
        ::rmdir(temp_.c_str());
        return false;
    }
    return fs::exists(temp_);
}

void OutputDir::refuse_existing(const std::string & name) const {
    if (!force_ && fs::exists(fs::path(path_) / name)) {
        throw Error(ErrorKind::io, in_quotes((fs::path(path_) / name).string(), 1024) + ": file exists",
                    "use --force to replace it");
    }
}

std::string OutputDir::file(const std::string & name) {
    refuse_existing(name);
    names_.push_back(name);
    const fs::path path = fs::path(temp_) / name;
    if (path.parent_path() != fs::path(temp_)) {
        temporary_.emplace_back(path.parent_path().string());
    }
    temporary_.emplace_back(path.string());
    std::error_code code;
    fs::create_directories(path.parent_path(), code);
    if (code) {
        fail(path_, "cannot create a directory in it", code);
    }
    return path.string();
}

void OutputDir::commit() {
    if (fs::exists(path_)) {
        move_files();
    } else {
        rename_whole();
    }
}

void OutputDir::rename_whole() {
    sync_names(temp_);
    std::error_code code;
    fs::rename(temp_, path_, code);
    if (code) {
        fail(path_, "cannot rename the finished directory to it", code);
    }
    try {
        sync_names(fs::path(path_).parent_path());
    } catch (const Error &) {
        fs::rename(path_, temp_, code);
        throw;
    }
}

void OutputDir::move_files() {
    std::set<fs::path>    touched{ path_ };
    std::vector<fs::path> made; // directories before the files in them
    try {
        for (const std::string & name : names_) {
            const fs::path  target = fs::path(path_) / name;
            std::error_code code;
            refuse_existing(name);
            if (fs::create_directories(target.parent_path(), code)) {
                made.push_back(target.parent_path());
            }
            fs::rename(fs::path(temp_) / name, target, code);
            if (code) {
                fail(target.string(), "cannot move the finished file to it", code);
            }
            made.push_back(target);
            touched.insert(target.parent_path());
        }
        for (const fs::path & directory : touched) {
            sync_names(directory);
        }
    } catch (const Error &) {
        if (!force_) { // what was replaced with force is gone
            std::error_code ignored;
            for (auto path = made.rbegin(); path != made.rend(); ++path) {
                fs::remove(*path, ignored);
            }
        }
        throw;
    }
}

} // namespace penelope
