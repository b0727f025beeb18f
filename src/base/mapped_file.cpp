#include "base/mapped_file.h"

#include "base/error.h"
#include "base/format.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penelope {

namespace {

struct Descriptor {
    int fd = -1;
    ~Descriptor() {
        if (fd >= 0) {
            ::close(fd);
        }
    }
};

} // namespace

MappedFile MappedFile::open(const std::string & path) {
    // O_NONBLOCK: opening a pipe by mistake must not wait for its writer; it changes nothing for regular files.
    const Descriptor file{ ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
    if (file.fd < 0) {
        const int         code = errno;
        const std::string why  = in_quotes(path, 1024) + ": " + std::strerror(code);
        if (code == ENOENT || code == ENOTDIR) {
            throw Error(ErrorKind::not_found, why, "check the path");
        }
        throw Error(ErrorKind::io, why);
    }
    struct stat info {};
    if (::fstat(file.fd, &info) != 0) {
        throw Error(ErrorKind::io, in_quotes(path, 1024) + ": " + std::strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        throw Error(ErrorKind::format,
                    in_quotes(path, 1024) + ": " + (S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file"),
                    "give the path of a file");
    }
    const size_t size = static_cast<size_t>(info.st_size);
    if (size == 0) {
        return MappedFile(path, nullptr, 0);
    }
    void * address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
    if (address == MAP_FAILED) {
        const ErrorKind kind = errno == ENOMEM ? ErrorKind::memory : ErrorKind::io;
        throw Error(kind, in_quotes(path, 1024) + ": cannot map " + format_bytes(size) + ": " + std::strerror(errno));
    }
    return MappedFile(path, static_cast<const uint8_t *>(address), size);
}

MappedFile MappedFile::borrow(const std::string & name, const ByteView & bytes) {
    MappedFile file(name, bytes.data, bytes.size);
    file.is_owned_ = false;
    return file;
}

MappedFile::MappedFile(std::string path, const uint8_t * data, size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

MappedFile::MappedFile(MappedFile && other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
      is_owned_(other.is_owned_) {}

MappedFile & MappedFile::operator=(MappedFile && other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(is_owned_, other.is_owned_);
    return *this;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr && is_owned_) {
        ::munmap(const_cast<uint8_t *>(data_), size_);
    }
}

void MappedFile::will_need(size_t offset, size_t size) const {
    if (offset >= size_ || !is_owned_) {
        return;
    }
    const size_t page  = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t end   = offset + std::min(size, size_ - offset);
    const size_t begin = offset / page * page;
    ::madvise(const_cast<uint8_t *>(data_) + begin, end - begin, MADV_WILLNEED);
}

void MappedFile::drop(size_t offset, size_t size) const {
    if (offset >= size_ || !is_owned_) { // dropped pages of memory without a file behind it come back as zeros
        return;
    }
    const size_t page  = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t end   = (offset + std::min(size, size_ - offset)) / page * page;
    const size_t begin = (offset + page - 1) / page * page;
    if (begin < end) {
        ::madvise(const_cast<uint8_t *>(data_) + begin, end - begin, MADV_DONTNEED);
    }
}

} // namespace penelope
