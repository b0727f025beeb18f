// A folder of our own for files that nobody keeps, under a name nobody can guess (mkdtemp), readable by its owner alone
// and removed with everything in it. Only a folder that was made here is ever removed.
#pragma once

#include "base/atomic_file.h"

#include <string>

namespace penelope {

class TemporaryDirectory {
  public:
    TemporaryDirectory(); // in TMPDIR, else /tmp; throws Error(io)
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory &)             = delete;
    TemporaryDirectory & operator=(const TemporaryDirectory &) = delete;

    const std::string & path() const { return path_; }
    std::string         file(const std::string & name) const { return path_ + "/" + name; }

  private:
    std::string   path_;
    TemporaryPath temporary_; // path_
};

} // namespace penelope
