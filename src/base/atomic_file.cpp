#include "base/atomic_file.h"

#include "base/error.h"
#include "base/format.h"
#include "base/sync_path.h"
#include "base/temporary_name.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr size_t buffer_size    = 1 << 18;
constexpr size_t writeback_size = 4 << 20;
constexpr size_t n_slots        = 32;

// What exists for now. A signal handler can neither lock nor allocate, hence the fixed table: a slot is free (0), being
// filled (1) or holds a path to remove (2).
struct Slot {
    std::atomic<int> state{ 0 };
    char             path[PATH_MAX];
};
static_assert(std::atomic<int>::is_always_lock_free, "the table is read in signal handlers");
Slot slots[n_slots];

std::string directory_of(const std::string & path) {
    return fs::path(path).parent_path().string();
}

std::string quoted_path(const std::string & path) {
    return in_quotes(path, 1024);
}

} // namespace

std::string writable_target(const std::string & path, bool force) {
    std::error_code ec;
    fs::path        target = fs::absolute(path, ec);
    if (path.empty() || ec || !target.has_filename()) {
        throw Error(ErrorKind::usage, quoted_path(path) + ": is not a file name");
    }
    if (fs::is_symlink(target, ec)) {
        const fs::path resolved = fs::canonical(target, ec);
        if (ec) {
            throw Error(ErrorKind::io, quoted_path(path) + ": is a symbolic link to nothing",
                        "remove it or choose another path");
        }
        target = resolved;
    }
    const fs::file_status status = fs::status(target, ec);
    // Neither there nor absent: the name is too long, or a directory is closed to us.
    if (status.type() == fs::file_type::none) {
        throw Error(ErrorKind::io, quoted_path(path) + ": " + ec.message());
    }
    if (fs::exists(status)) {
        if (!fs::is_regular_file(status)) {
            throw Error(ErrorKind::io,
                        quoted_path(path) + ": " +
                            (fs::is_directory(status) ? "is a directory" : "is not a regular file"),
                        "choose another path");
        }
        if (!force) {
            throw Error(ErrorKind::io, quoted_path(path) + ": file exists", "use --force to replace it");
        }
    }
    if (!fs::is_directory(target.parent_path(), ec)) {
        throw Error(ErrorKind::not_found,
                    quoted_path(path) + ": directory " + quoted_path(target.parent_path().string()) + " does not exist",
                    "create the directory first");
    }
    return target.string();
}

TemporaryPath::TemporaryPath(const std::string & path) {
    if (path.size() >= sizeof(Slot::path)) {
        throw Error(ErrorKind::io, quoted_path(path) + ": path too long");
    }
    for (size_t i = 0; i < n_slots; ++i) {
        int expected = 0;
        if (slots[i].state.compare_exchange_strong(expected, 1)) {
            std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
            slots[i].state.store(2);
            slot_ = static_cast<int>(i);
            return;
        }
    }
    throw Error(ErrorKind::io, quoted_path(path) + ": too many files being written at once");
}

TemporaryPath::TemporaryPath(TemporaryPath && other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

TemporaryPath & TemporaryPath::operator=(TemporaryPath && other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
}

void TemporaryPath::release() noexcept {
    if (slot_ >= 0) {
        slots[slot_].state.store(0);
        slot_ = -1;
    }
}

AtomicFile::AtomicFile(const std::string & path, bool force)
    : path_(path), target_(writable_target(path, force)), force_(force) {
    buffer_.reserve(buffer_size);
    remove_stale_files_once(directory_of(target_));
    // Another name where a file of it is there: one that a process of the same number left behind, or is at work on in
    // a container of its own.
    for (int attempt = 0; fd_ < 0 && attempt < 100; ++attempt) {
        create();
    }
    if (fd_ < 0) {
        fail("cannot create a file in its directory", EEXIST);
    }
    struct stat old {};
    if (::stat(target_.c_str(), &old) == 0 && ::fchmod(fd_, old.st_mode & 07777) != 0) {
        const int code = errno;
        discard();
        fail("cannot set the mode of the new file", code);
    }
}

AtomicFile::~AtomicFile() {
    discard();
}

// A temporary file under the next name, false when that is taken.
bool AtomicFile::create() {
    temp_path_ = next_temporary_name(directory_of(target_));
    fd_        = ::open(temp_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) {
        if (errno != EEXIST && errno != EINTR) {
            fail("cannot create a file in its directory", errno);
        }
        return false;
    }
    if (!lock_temporary(fd_)) {
        discard();
        return false;
    }
    try {
        temporary_ = TemporaryPath(temp_path_);
    } catch (const Error &) {
        discard();
        throw;
    }
    return true;
}

void AtomicFile::discard() noexcept {
    if (fd_ >= 0) {
        ::close(fd_);
        fd_ = -1;
        ::unlink(temp_path_.c_str());
    }
    temporary_.release();
}

void AtomicFile::fail(const std::string & what, int code) const {
    std::string hint;
    if (code == ENOSPC || code == EDQUOT) {
        hint = "nothing was kept; free some space or choose another directory";
    } else if (code == EFBIG) {
        hint = "nothing was kept; the limit on file sizes (ulimit -f) or of the file system is too small";
    }
    throw Error(ErrorKind::io, quoted_path(path_) + ": " + what + ": " + std::strerror(code), hint);
}

void AtomicFile::require_space(uint64_t bytes) const {
    struct statvfs info {};
    if (::statvfs(directory_of(target_).c_str(), &info) != 0) {
        return; // no figure, no refusal: the writes will tell
    }
    const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    if (bytes > free_bytes) {
        throw Error(ErrorKind::io,
                    quoted_path(path_) + ": needs " + std::to_string(bytes) + " bytes (" + format_bytes(bytes) +
                        ") but only " + format_bytes(free_bytes) + " are free on the disk",
                    "nothing was written; free some space or choose another directory");
    }
}

void AtomicFile::write(const void * data, size_t size) {
    const uint8_t * bytes = static_cast<const uint8_t *>(data);
    size_ += size;
    if (buffer_.size() + size <= buffer_size) {
        buffer_.insert(buffer_.end(), bytes, bytes + size);
        return;
    }
    flush_buffer();
    write_through(bytes, size);
}

void AtomicFile::flush_buffer() {
    write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
}

void AtomicFile::write_through(const uint8_t * bytes, size_t size) {
    while (size > 0) {
        const ssize_t n = ::write(fd_, bytes, std::min<size_t>(size, 1 << 30));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            fail("cannot write " + std::to_string(size) + " bytes after " + std::to_string(n_written_),
                 n < 0 ? errno : EIO);
        }
        bytes += n;
        size -= static_cast<size_t>(n);
        n_written_ += static_cast<uint64_t>(n);
    }
#ifdef SYNC_FILE_RANGE_WRITE
    // The disk works while the next bytes are made, so that sync() has little left to wait for. Only a start: errors
    // show there.
    if (n_written_ - n_writeback_ >= writeback_size) {
        ::sync_file_range(fd_, static_cast<off_t>(n_writeback_), static_cast<off_t>(n_written_ - n_writeback_),
                          SYNC_FILE_RANGE_WRITE);
        n_writeback_ = n_written_;
    }
#endif
}

void AtomicFile::sync() {
    flush_buffer();
    if (const int code = sync_open_file(fd_)) {
        fail("cannot bring " + std::to_string(size_) + " bytes to the disk", code);
    }
}

void AtomicFile::commit() {
    sync();
    if (!force_ && ::link(temp_path_.c_str(), target_.c_str()) == 0) {
        ::unlink(temp_path_.c_str());
    } else if (!force_ && errno == EEXIST) {
        throw Error(ErrorKind::io, quoted_path(path_) + ": file exists", "use --force to replace it");
    } else if (::rename(temp_path_.c_str(), target_.c_str()) != 0) { // with force, or where there are no hard links
        fail("cannot rename " + quoted_path(temp_path_) + " to it", errno);
    }
    temporary_.release();
    ::close(fd_);
    fd_ = -1;
    if (const int code = sync_path(directory_of(target_))) {
        if (!force_) { // what it replaced with force is gone
            ::unlink(target_.c_str());
        }
        fail("cannot bring its name to the disk", code);
    }
}

void write_file(const std::string & path, std::string_view content, bool force) {
    AtomicFile file(path, force);
    file.write(content);
    file.commit();
}

bool remove_temporary_files() noexcept {
    bool       any      = false;
    const auto for_each = [&](int (*remove)(const char *)) {
        for (Slot & slot : slots) {
            if (slot.state.load() == 2) {
                any |= remove(slot.path) == 0;
            }
        }
    };
    for_each(::unlink);
    for_each(::rmdir); // directories are empty by now, but for those with a directory in them
    for_each(::rmdir);
    return any;
}

} // namespace penelope
