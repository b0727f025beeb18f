#include "base/directory_lock.h"

#include "base/error.h"
#include "base/format.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace penelope {

DirectoryLock::DirectoryLock(const std::string & folder)
    : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) {
        throw Error(ErrorKind::io, in_quotes(folder, 1024) + ": cannot be opened: " + std::strerror(errno));
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
        return;
    }
    lock_error_ = std::strerror(errno);
    if (errno == EWOULDBLOCK) {
        ::close(std::exchange(fd_, -1));
        throw Error(ErrorKind::io, in_quotes(folder, 1024) + ": another process is writing there",
                    "wait until it has ended, or choose another folder");
    }
}

DirectoryLock::~DirectoryLock() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

DirectoryLock::DirectoryLock(DirectoryLock && other) noexcept
    : fd_(std::exchange(other.fd_, -1)), lock_error_(std::move(other.lock_error_)) {}

DirectoryLock & DirectoryLock::operator=(DirectoryLock && other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(lock_error_, other.lock_error_);
    return *this;
}

} // namespace penelope
