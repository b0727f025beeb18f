// Keeps a second process out of a folder while this one writes there. The lock (flock on the folder itself) needs no
// file of its own and ends with the process, however that ends.
#pragma once

#include <string>

namespace penelope {

class DirectoryLock {
  public:
    DirectoryLock() = default;
    // Throws Error(io) when another process holds it. Where the file system knows no locks the folder stays open to
    // all, and lock_error() says why.
    explicit DirectoryLock(const std::string & folder);
    ~DirectoryLock();
    DirectoryLock(DirectoryLock && other) noexcept;
    DirectoryLock & operator=(DirectoryLock && other) noexcept;

    const std::string & lock_error() const { return lock_error_; } // empty: others are kept out

  private:
    int         fd_ = -1;
    std::string lock_error_;
};

} // namespace penelope
