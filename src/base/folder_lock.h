// Keeps a second process out of a folder while this one writes there. The lock (flock on the folder itself) needs no file of
// its own and ends with the process, however that ends.
#pragma once

#include <string>

namespace penelope {

class FolderLock {
  public:
    FolderLock() = default;
    // Throws Error(io) when another process holds it. Where the file system knows no locks the folder stays open to
    // all, and obstacle() says why.
    explicit FolderLock(const std::string & folder);
    ~FolderLock();
    FolderLock(FolderLock && other) noexcept;
    FolderLock & operator=(FolderLock && other) noexcept;

    const std::string & obstacle() const { return obstacle_; } // empty: others are kept out

  private:
    int         fd_ = -1;
    std::string obstacle_;
};

} // namespace penelope
