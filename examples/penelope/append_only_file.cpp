#include "append_only_file.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace penelope {

AppendOnlyFile::AppendOnlyFile(const std::string & path, bool force)
    : path_(path), target_(writable_target(path, force)), force_(force) {}

AppendOnlyFile::~AppendOnlyFile() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

void AppendOnlyFile::create() {
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (force_ ? O_TRUNC : O_EXCL), 0666);
    if (fd_ < 0) {
        fail(errno);
    }
}

void AppendOnlyFile::append(std::string_view lines) {
    if (fd_ < 0) {
        create();
    }
    for (size_t n_written = 0; n_written < lines.size();) {
        const ssize_t n = ::write(fd_, lines.data() + n_written, lines.size() - n_written);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            const int code = n < 0 ? errno : EIO;
            // Remove the partial line. If that fails too, the file ends with an incomplete line.
            if (::ftruncate(fd_, static_cast<off_t>(size_)) == 0) {
                ::lseek(fd_, static_cast<off_t>(size_), SEEK_SET);
            }
            if (size_ == 0) {
                ::unlink(target_.c_str());
                ::close(std::exchange(fd_, -1));
            }
            fail(code);
        }
        n_written += static_cast<size_t>(n);
    }
    size_ += lines.size();
}

void AppendOnlyFile::fail(int code) const {
    throw Error(ErrorKind::io, in_quotes(path_, 1024) + ": write failed: " + std::strerror(code),
                code == EEXIST ? "use --force to replace it" : "");
}

} // namespace penelope
