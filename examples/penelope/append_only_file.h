// A file of lines that others may read while it grows: made by the first append(), whole lines at any moment, kept whatever
// happens to the process. Failures are Errors(io) that name the path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penelope {

class AppendOnlyFile {
  public:
    // Refuses what AtomicFile refuses. Nothing is touched before the first append(), which empties an existing file.
    AppendOnlyFile(const std::string & path, bool force);
    ~AppendOnlyFile();
    AppendOnlyFile(const AppendOnlyFile &)             = delete;
    AppendOnlyFile & operator=(const AppendOnlyFile &) = delete;

    const std::string & path() const { return path_; }       // as given
    bool                is_open() const { return fd_ >= 0; } // what is there is of this object

    // All of the lines are in the file afterwards, or, when it throws, none of them.
    void append(std::string_view lines);

  private:
    void              create();
    [[noreturn]] void fail(int code) const;

    std::string path_, target_;
    bool        force_;
    int         fd_   = -1;
    uint64_t    size_ = 0;
};

} // namespace penelope
