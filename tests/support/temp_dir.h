// A directory of its own for a test, removed with everything in it at the end.
#pragma once

#include "base/temporary_directory.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace penelope::test {

class TempDir {
  public:
    TempDir() : path_(folder_.path()) {}

    const std::filesystem::path & path() const { return path_; }
    std::string                   file(const std::string & name) const { return (path_ / name).string(); }

    std::string write(const std::string & name, const std::string & content) const {
        std::ofstream out(file(name), std::ios::binary);
        out.write(content.data(), std::streamsize(content.size()));
        return file(name);
    }

  private:
    TemporaryDirectory    folder_;
    std::filesystem::path path_;
};

inline size_t n_entries(const std::filesystem::path & folder) {
    return size_t(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

inline std::string read_bytes(const std::filesystem::path & path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        throw std::runtime_error("cannot read " + path.string());
    }
    return { std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>() };
}

} // namespace penelope::test
