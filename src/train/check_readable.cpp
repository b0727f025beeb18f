#include "train/check_readable.h"

#include "base/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace penelope {

void check_readable(const std::string & path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    std::vector<char> buffer(1 << 20);
    uint64_t          n_read = 0;
    int               code   = 0;
    while (code == 0 || code == EINTR) {
        const ssize_t n = ::read(fd, buffer.data(), buffer.size());
        if (n == 0) {
            break;
        }
        code = n < 0 ? errno : 0;
        n_read += n > 0 ? static_cast<uint64_t>(n) : 0;
    }
    ::close(fd);
    if (code == EIO) {
        throw Error(ErrorKind::format,
                    path + ": cannot be read after " + std::to_string(n_read) + " bytes: " + std::strerror(code));
    }
}

} // namespace penelope
