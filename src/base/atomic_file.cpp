#include "base/atomic_file.h"

#include "base/error.h"
#include "base/format.h"

#include <fcntl.h>
#include <sys/file.h>
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

constexpr size_t buffer_size = 1 << 18;
constexpr size_t start_size  = 4 << 20;
constexpr size_t n_slots     = 32;

// What exists for now. A signal handler can neither lock nor allocate, hence the fixed table: a slot is free (0), being
// filled (1) or holds a path to remove (2).
struct Slot {
    std::atomic<int> state{ 0 };
    char             path[PATH_MAX];
};
static_assert(std::atomic<int>::is_always_lock_free, "the table is read in signal handlers");
Slot slots[n_slots];

void sync_directory(const std::string & file) {
    // Some file systems cannot sync a directory; the file itself is safe already.
    const int fd = ::open(fs::path(file).parent_path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ::fsync(fd);
        ::close(fd);
    }
}

std::string shown(const std::string & path) {
    return in_quotes(path, 1024);
}

} // namespace

std::string writable_target(const std::string & path, bool force) {
    std::error_code ec;
    fs::path        target = fs::absolute(path, ec);
    if (path.empty() || ec || !target.has_filename()) {
        throw Error(ErrorKind::usage, shown(path) + ": is not a file name");
    }
    if (fs::is_symlink(target, ec)) {
        const fs::path resolved = fs::canonical(target, ec);
        if (ec) {
            throw Error(ErrorKind::io, shown(path) + ": is a symbolic link to nothing",
                        "remove it or choose another path");
        }
        target = resolved;
    }
    const fs::file_status status = fs::status(target, ec);
    // Neither there nor absent: the name is too long, or a directory is closed to us.
    if (status.type() == fs::file_type::none) {
        throw Error(ErrorKind::io, shown(path) + ": " + ec.message());
    }
    if (fs::exists(status)) {
        if (!fs::is_regular_file(status)) {
            throw Error(ErrorKind::io,
                        shown(path) + ": " + (fs::is_directory(status) ? "is a directory" : "is not a regular file"),
                        "choose another path");
        }
        if (!force) {
            throw Error(ErrorKind::io, shown(path) + ": file exists", "use --force to replace it");
        }
    }
    if (!fs::is_directory(target.parent_path(), ec)) {
        throw Error(ErrorKind::not_found,
                    shown(path) + ": directory " + shown(target.parent_path().string()) + " does not exist",
                    "create the directory first");
    }
    return target.string();
}

TemporaryPath::TemporaryPath(const std::string & path) {
    if (path.size() >= sizeof(Slot::path)) {
        throw Error(ErrorKind::io, shown(path) + ": path too long");
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
    throw Error(ErrorKind::io, shown(path) + ": too many files being written at once");
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
    // Another name where a file of it is there: one that a killed process of the same number left behind.
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

// A temporary file under the next name, false when that is taken. Its lock shows remove_leftovers() of other processes that
// somebody is at work; one of them may have been faster than the lock, and then the file has no name any more.
bool AtomicFile::create() {
    static std::atomic<unsigned> counter{ 0 };
    const std::string name = ".penelope-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
    temp_path_             = (fs::path(target_).parent_path() / name).string();
    temporary_             = TemporaryPath(temp_path_);
    fd_                    = ::open(temp_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) {
        const int code = errno;
        temporary_.release();
        if (code != EEXIST) {
            fail("cannot create a file in its directory", code);
        }
        return false;
    }
    struct stat made {};
    const bool  is_taken = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (is_taken || (::fstat(fd_, &made) == 0 && made.st_nlink == 0)) {
        discard();
        return false;
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
    throw Error(ErrorKind::io, shown(path_) + ": " + what + ": " + std::strerror(code), hint);
}

void AtomicFile::require_space(uint64_t bytes) const {
    struct statvfs info {};
    if (::statvfs(fs::path(target_).parent_path().c_str(), &info) != 0) {
        return; // no figure, no refusal: the writes will tell
    }
    const uint64_t room = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    if (bytes > room) {
        throw Error(ErrorKind::io,
                    shown(path_) + ": needs " + std::to_string(bytes) + " bytes (" + format_bytes(bytes) +
                        ") but only " + format_bytes(room) + " are free on the disk",
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
            fail("cannot write " + std::to_string(size) + " bytes after " + std::to_string(n_through_),
                 n < 0 ? errno : EIO);
        }
        bytes += n;
        size -= static_cast<size_t>(n);
        n_through_ += static_cast<uint64_t>(n);
    }
#ifdef SYNC_FILE_RANGE_WRITE
    // The disk works while the next bytes are made, so that sync() has little left to wait for. Only a start: errors show there.
    if (n_through_ - n_started_ >= start_size) {
        ::sync_file_range(fd_, static_cast<off_t>(n_started_), static_cast<off_t>(n_through_ - n_started_),
                          SYNC_FILE_RANGE_WRITE);
        n_started_ = n_through_;
    }
#endif
}

void AtomicFile::sync() {
    flush_buffer();
    if (::fsync(fd_) != 0) {
        fail("cannot bring " + std::to_string(size_) + " bytes to the disk", errno);
    }
}

void AtomicFile::commit() {
    sync();
    if (!force_ && ::link(temp_path_.c_str(), target_.c_str()) == 0) {
        ::unlink(temp_path_.c_str());
    } else if (!force_ && errno == EEXIST) {
        throw Error(ErrorKind::io, shown(path_) + ": file exists", "use --force to replace it");
    } else if (::rename(temp_path_.c_str(), target_.c_str()) != 0) { // with force, or where there are no hard links
        fail("cannot rename " + shown(temp_path_) + " to it", errno);
    }
    temporary_.release();
    ::close(fd_);
    fd_ = -1;
    sync_directory(target_);
}

void write_file(const std::string & path, std::string_view content, bool force) {
    AtomicFile file(path, force);
    file.write(content);
    file.commit();
}

void remove_leftovers(const std::string & directory) {
    std::error_code ec;
    for (const fs::directory_entry & entry : fs::directory_iterator(directory, ec)) {
        const std::string name = entry.path().filename().string();
        if (name.compare(0, 10, ".penelope-") != 0 || entry.path().extension() != ".tmp") {
            continue;
        }
        const int fd = ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
                ::unlink(entry.path().c_str());
            }
            ::close(fd);
        }
    }
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
