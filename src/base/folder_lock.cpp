#include "base/folder_lock.h"

#include "base/error.h"
#include "base/format.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace penelope {

FolderLock::FolderLock(const std::string & folder) : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) {
        throw Error(ErrorKind::io, in_quotes(folder, 1024) + ": cannot be opened: " + std::strerror(errno));
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
        return;
    }
    obstacle_ = std::strerror(errno);
    if (errno == EWOULDBLOCK) {
        ::close(std::exchange(fd_, -1));
        throw Error(ErrorKind::io, in_quotes(folder, 1024) + ": another process is writing there",
                    "wait until it has ended, or choose another folder");
    }
}

FolderLock::~FolderLock() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

FolderLock::FolderLock(FolderLock && other) noexcept
    : fd_(std::exchange(other.fd_, -1)), obstacle_(std::move(other.obstacle_)) {}

FolderLock & FolderLock::operator=(FolderLock && other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(obstacle_, other.obstacle_);
    return *this;
}

} // namespace penelope
