// A file of lines that can be read while it grows: created by the first append(), always ends with a whole line, and
// survives a crash of the process. Failures throw Error(io) with the path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penelope {

class AppendOnlyFile {
  public:
    // Throws like AtomicFile. The first append() truncates an existing file; before that nothing is touched.
    AppendOnlyFile(const std::string & path, bool force);
    ~AppendOnlyFile();
    AppendOnlyFile(const AppendOnlyFile &)             = delete;
    AppendOnlyFile & operator=(const AppendOnlyFile &) = delete;

    const std::string & path() const { return path_; }       // as given
    bool                is_open() const { return fd_ >= 0; } // the file was created by this object

    // Writes all lines, or throws and writes none.
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
