#include "base/output_dir.h"

#include "base/error.h"
#include "base/format.h"

#include <unistd.h>

#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const std::string & path, const std::string & what, const std::error_code & code) {
    throw Error(ErrorKind::io, in_quotes(path, 1024) + ": " + what + ": " + code.message());
}

} // namespace

OutputDir::OutputDir(const std::string & path, bool force) : path_(path), force_(force) {
    const fs::path target = fs::absolute(path).lexically_normal();
    const fs::path clean  = target.has_filename() ? target : target.parent_path();
    if (fs::exists(clean) && !fs::is_directory(clean)) {
        throw Error(ErrorKind::io, in_quotes(path, 1024) + ": exists and is not a directory", "choose another path");
    }
    if (!fs::is_directory(clean.parent_path())) {
        throw Error(ErrorKind::not_found, in_quotes(path, 1024) + ": its parent directory does not exist",
                    "create the directory first");
    }
    path_ = clean.string();
    temp_ =
        (clean.parent_path() / (".penelope-" + std::to_string(::getpid()) + "-" + clean.filename().string() + ".tmp"))
            .string();
    std::error_code code;
    fs::remove_all(temp_, code); // of a killed process with the same number
    temporary_.emplace_back(temp_);
    if (!fs::create_directory(temp_, code)) {
        fail(path_, "cannot create a directory beside it", code);
    }
}

OutputDir::~OutputDir() {
    std::error_code ignored;
    fs::remove_all(temp_, ignored);
}

std::string OutputDir::file(const std::string & name) {
    if (!force_ && fs::exists(fs::path(path_) / name)) {
        throw Error(ErrorKind::io, in_quotes((fs::path(path_) / name).string(), 1024) + ": file exists",
                    "use --force to replace it");
    }
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
    std::error_code code;
    if (!fs::exists(path_)) {
        fs::rename(temp_, path_, code);
        if (code) {
            fail(path_, "cannot rename the finished directory to it", code);
        }
        return;
    }
    for (const auto & name : names_) {
        const fs::path target = fs::path(path_) / name;
        fs::create_directories(target.parent_path(), code);
        fs::rename(fs::path(temp_) / name, target, code);
        if (code) {
            fail(target.string(), "cannot move the finished file to it", code);
        }
    }
}

} // namespace penelope
