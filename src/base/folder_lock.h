// Keeps a second process out of a folder while this one writes there. The lock (flock on the folder itself) needs no file of
// its own and ends with the process, however that ends.
#pragma once

#include <string>

namespace penelope {

class FolderLock {
  public:
    FolderLock() = default;
    // Throws Error(io) when another process holds it. Where the file system knows no locks the folder stays open to all.
    explicit FolderLock(const std::string & folder);
    ~FolderLock();
    FolderLock(FolderLock && other) noexcept;
    FolderLock & operator=(FolderLock && other) noexcept;

    bool is_held() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

} // namespace penelope
