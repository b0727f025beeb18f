#include "hub/blob_lock.h"

#include "base/error.h"
#include "base/format.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace penelope {

void BlobLock::open(const std::filesystem::path & path) {
    std::filesystem::create_directories(path.parent_path());
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) {
        throw Error(ErrorKind::io, in_quotes(path.string(), 1024) + ": cannot be opened: " + std::strerror(errno),
                    "HF_HUB_CACHE names the folder models are stored in");
    }
}

BlobLock::BlobLock(const std::filesystem::path & path) {
    open(path);
    // On a file system without locks everyone gets it.
    held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

BlobLock::BlobLock(const std::filesystem::path & path, const std::function<void()> & waiting,
                   const std::function<bool()> & cancelled)
    : BlobLock(path) {
    for (bool told = false; !held_; told = true) {
        if (!told && waiting) {
            waiting();
        }
        if (cancelled && cancelled()) {
            throw Error(ErrorKind::cancelled, "interrupted: while another process downloads the same file");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    }
}

BlobLock::~BlobLock() {
    if (fd_ >= 0) {
        ::close(fd_); // the file stays: removing it would let two processes hold two locks
    }
}

} // namespace penelope
