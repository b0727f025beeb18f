#include "base/temporary_directory.h"

#include "base/error.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory() {
    std::error_code ec;
    const fs::path  parent = fs::temp_directory_path(ec);
    std::string     name   = (parent / "penelope-XXXXXX").string();
    if (ec || !::mkdtemp(name.data())) {
        throw Error(ErrorKind::io, "no temporary folder can be made: " + (ec ? ec.message() : std::strerror(errno)),
                    "set TMPDIR to a directory that can be written to");
    }
    path_      = name;
    temporary_ = TemporaryPath(path_);
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

} // namespace penelope
