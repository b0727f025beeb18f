// A directory of files that appears complete or not at all.
//
// Files are written into a hidden directory beside the target. commit() renames it, or, when the target exists already,
// moves the files into it one by one; without commit() everything is removed, by remove_temporary_files() too. A file
// of the same name in the target needs `force`; without, a commit() that fails leaves none of the new ones there.
#pragma once

#include "base/atomic_file.h"
#include "base/directory_lock.h"

#include <string>
#include <vector>

namespace penelope {

class OutputDir {
  public:
    OutputDir(const std::string & path, bool force);
    ~OutputDir();
    OutputDir(const OutputDir &)             = delete;
    OutputDir & operator=(const OutputDir &) = delete;

    // Where to write the file `name` ("config.json", "lora/adapter_config.json") for now.
    std::string file(const std::string & name);
    void        commit();

  private:
    bool create();
    void rename_whole();
    void move_files();
    void refuse_existing(const std::string & name) const;

    std::string                path_;
    std::string                temp_;
    DirectoryLock              lock_; // of temp_: it is no leftover
    bool                       force_;
    std::vector<std::string>   names_;
    std::vector<TemporaryPath> temporary_;
};

} // namespace penelope
