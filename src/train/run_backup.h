// The files of a run that a new one in the same folder replaces: set aside until that has its first checkpoint, and put
// back when it never gets there. They are moved by renames alone, into a hidden folder beside each of them, and the
// newest checkpoint is the first to go and the last to come back: as long as it is missing, what was set aside is the
// run of the folder.
#pragma once

#include <string>
#include <vector>

namespace penelope {

class RunBackup {
  public:
    // folders: where its files lie. newest: its newest checkpoint.
    RunBackup(std::vector<std::string> folders, std::string newest)
        : folders_(std::move(folders)), newest_(std::move(newest)) {}

    bool has_backup() const;
    // Throws Error(io).
    void move_to_backup(const std::vector<std::string> & files) const;
    // As far as the file system lets us; what stays aside is tried again the next time.
    void restore() const noexcept;
    void remove() const noexcept;

  private:
    std::vector<std::string> folders_;
    std::string              newest_;
};

} // namespace penelope
