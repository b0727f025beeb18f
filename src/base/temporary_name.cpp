#include "base/temporary_name.h"

#include "base/format.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <set>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr const char * kBegin = ".penelope-";
constexpr const char * kEnd   = ".tmp";

bool is_temporary_name(const std::string & name) {
    return name.rfind(kBegin, 0) == 0 && ends_with(name, kEnd);
}

// Nobody is at work on it: the lock can be had.
void remove_if_stale(const fs::directory_entry & entry) {
    std::error_code ignored;
    const fs::path  path = entry.path();
    if (entry.is_symlink(ignored) || !(entry.is_regular_file(ignored) || entry.is_directory(ignored))) {
        return;
    }
    const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
        fs::remove_all(path, ignored);
    }
    ::close(fd);
}

} // namespace

std::string next_temporary_name(const std::string & directory) {
    static std::atomic<unsigned> counter{ 0 };
    return (fs::path(directory) / (kBegin + std::to_string(::getpid()) + "-" + std::to_string(counter++) + kEnd))
        .string();
}

bool lock_temporary(int fd) {
    struct stat made {};
    const bool  is_taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return !is_taken && !(::fstat(fd, &made) == 0 && made.st_nlink == 0);
}

void remove_stale_files(const std::string & directory) {
    std::error_code ec;
    for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec)) {
        if (is_temporary_name(it->path().filename().string())) {
            remove_if_stale(*it);
        }
    }
}

void remove_stale_files_once(const std::string & directory) {
    static std::mutex            mutex;
    static std::set<std::string> seen;
    {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!seen.insert(directory).second) {
            return;
        }
    }
    remove_stale_files(directory);
}

} // namespace penelope
