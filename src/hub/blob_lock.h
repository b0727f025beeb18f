// Keeps other processes from writing a blob of the cache. The lock is the one huggingface_hub takes.
#pragma once

#include <filesystem>
#include <functional>

namespace penelope {

class BlobLock {
  public:
    // Waits for another process that holds it. waiting: called once if it has to wait. cancelled: asked while waiting;
    // true throws Error(cancelled).
    BlobLock(const std::filesystem::path & path, const std::function<void()> & waiting,
             const std::function<bool()> & cancelled);
    // Does not wait; held() says whether it got it.
    explicit BlobLock(const std::filesystem::path & path);
    ~BlobLock();
    BlobLock(const BlobLock &)             = delete;
    BlobLock & operator=(const BlobLock &) = delete;

    bool held() const { return held_; }

  private:
    void open(const std::filesystem::path & path);

    int  fd_   = -1;
    bool held_ = false;
};

} // namespace penelope
