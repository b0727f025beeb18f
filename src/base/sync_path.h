// fsync for files and directories. Both return errno, 0 on success.
#pragma once

#include <string>

namespace penelope {

int sync_open_file(int fd);

// A file, or the names in a directory. Where the file system knows no such thing nothing is done.
int sync_path(const std::string & path);

} // namespace penelope
