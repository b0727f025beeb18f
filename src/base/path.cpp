#include "base/path.h"

namespace penelope {

namespace fs = std::filesystem;

fs::path absolute_path(const std::string & path) {
    return fs::absolute(path).lexically_normal();
}

fs::path absolute_directory(const std::string & path) {
    const fs::path absolute = absolute_path(path);
    return absolute.has_filename() ? absolute : absolute.parent_path();
}

} // namespace penelope
