// A private temporary directory (mkdtemp), removed with its contents by the destructor.
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
