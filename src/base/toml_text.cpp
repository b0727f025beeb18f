#include "base/toml_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace penelope {

namespace {

constexpr size_t kMaxBytes = 65536;
constexpr size_t kMaxDots  = 1024; // in all, comments aside

// Dots of lines that are no comments: more than there are tables inside tables.
size_t count_dots(std::string_view text) {
    size_t n = 0;
    while (!text.empty()) {
        const std::string_view line  = text.substr(0, text.find('\n'));
        const size_t           start = line.find_first_not_of(" \t");
        if (start != std::string_view::npos && line[start] != '#') {
            n += size_t(std::count(line.begin(), line.end(), '.'));
        }
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return n;
}

} // namespace

std::string read_toml_text(const std::string & path, ErrorKind kind) {
    std::ifstream file(path, std::ios::binary);
    if (!file || std::filesystem::is_directory(path)) {
        throw Error(ErrorKind::not_found, path + ": no such file");
    }
    std::string text(kMaxBytes + 1, '\0');
    file.read(text.data(), std::streamsize(text.size()));
    if (file.bad()) {
        throw Error(ErrorKind::io, path + ": cannot be read: " + std::strerror(errno));
    }
    text.resize(size_t(file.gcount()));
    text.shrink_to_fit(); // it may be kept
    if (text.size() > kMaxBytes) {
        throw Error(kind, path + ": more than 64 KiB of TOML");
    }
    return text;
}

toml::table parse_toml(const std::string & text, const std::string & path, ErrorKind kind) {
    if (count_dots(text) > kMaxDots) {
        throw Error(kind, path + ": more than " + std::to_string(kMaxDots) +
                              " dots in keys and values: keys nested too deep");
    }
    try {
        return toml::parse(text, path);
    } catch (const toml::parse_error & error) {
        throw Error(kind, path + ", line " + std::to_string(error.source().begin.line) + ": " +
                              std::string(error.description()));
    }
}

} // namespace penelope
