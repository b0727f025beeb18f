// A file that appears complete or not at all: written under a temporary name in the target's directory, flushed to the
// disk and renamed by commit(). Without commit() (an exception, an early return) the temporary file is removed; those
// of killed processes go when the next one writes to their directory. Failures are Errors that name the path; a full
// disk or a size limit is Error(io) with the bytes that were to be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

// A path that exists only for now: while this object lives, remove_temporary_files() removes the file, or the empty
// directory, that is there. Throws Error(io) when too many are registered. Movable; the object it was moved from holds
// none.
class TemporaryPath {
  public:
    TemporaryPath() = default;
    explicit TemporaryPath(const std::string & path);
    ~TemporaryPath() { release(); }
    TemporaryPath(TemporaryPath && other) noexcept;
    TemporaryPath & operator=(TemporaryPath && other) noexcept;

    void release() noexcept;

  private:
    int slot_ = -1; // in the table of remove_temporary_files()
};

class AtomicFile {
  public:
    // Refuses an existing target unless `force`; a target that is no regular file is always refused. A symbolic link is
    // followed: the file it names is replaced, the link stays.
    AtomicFile(const std::string & path, bool force);
    ~AtomicFile();
    AtomicFile(const AtomicFile &)             = delete;
    AtomicFile & operator=(const AtomicFile &) = delete;

    const std::string & path() const { return path_; }           // as given
    const std::string & temp_path() const { return temp_path_; } // what exists until commit()
    uint64_t            size() const { return size_; }           // bytes written so far

    // Throws when the file system has less room than this. Call it when the final size is known, before writing.
    void require_space(uint64_t bytes) const;

    void write(const void * data, size_t size);
    void write(std::string_view text) { write(text.data(), text.size()); }
    // Everything written so far is on the disk; the temporary file can be read back.
    void sync();
    // sync() and rename. Without `force` a target that has appeared meanwhile is refused, not replaced.
    void commit();

  private:
    bool              create();
    void              flush_buffer();
    void              write_through(const uint8_t * bytes, size_t size);
    void              discard() noexcept;
    [[noreturn]] void fail(const std::string & what, int code) const;

    std::string          path_;
    std::string          target_; // path_ made absolute, links resolved
    std::string          temp_path_;
    std::vector<uint8_t> buffer_;
    uint64_t             size_        = 0;
    uint64_t             n_written_   = 0; // bytes the system has taken; size_ counts those in buffer_ too
    uint64_t             n_writeback_ = 0; // of these, bytes the system was told to bring to the disk
    int                  fd_          = -1;
    TemporaryPath        temporary_; // temp_path_
    bool                 force_ = false;
};

// Where a file given as `path` will really be: absolute, through a symbolic link. Throws Error for what an AtomicFile
// refuses.
std::string writable_target(const std::string & path, bool force);

void write_file(const std::string & path, std::string_view content, bool force);

// Removes what is at the TemporaryPaths of this process, those of open AtomicFiles among them; true when there was
// something. Async-signal-safe: for handlers of signals that end the program, right before _exit. Nothing of it must be
// used afterwards.
bool remove_temporary_files() noexcept;

} // namespace penelope
