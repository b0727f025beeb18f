#include "base/sync_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace penelope {

int sync_open_file(int fd) {
    int result = 0;
    do {
        result = ::fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

int sync_path(const std::string & path) {
    int fd = -1;
    do {
        fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return errno == EACCES ? 0 : errno; // a directory may be open for writing alone
    }
    const int code = sync_open_file(fd);
    ::close(fd);
    return code == EINVAL || code == ENOTSUP ? 0 : code;
}

} // namespace penelope
