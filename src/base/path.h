// Paths of files and directories.
#pragma once

#include <filesystem>
#include <string>

namespace penelope {

// From the root on, without "." and ".." and without asking the disk. "a/" keeps an empty last part.
std::filesystem::path absolute_path(const std::string & path);

// The same, but "a/" is "a": its last part is the name of the directory.
std::filesystem::path absolute_directory(const std::string & path);

} // namespace penelope
