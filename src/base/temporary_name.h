// Names of what exists until it is finished, ".penelope-PROCESS-NUMBER.tmp", and what killed processes leave under
// them. Whoever is at work on such a file or directory holds its lock (flock), which ends with the process, however
// that ends.
#pragma once

#include <string>

namespace penelope {

// One in this directory that the process has not used before.
std::string next_temporary_name(const std::string & directory);

// Takes the lock of a file that was just made. False when another process took it for a leftover before that: the file
// has lost its name.
bool lock_temporary(int fd);

// Removes what ended processes left in a directory, files and directories; what living ones are at work on stays.
void remove_stale_files(const std::string & directory);

// The same, but only the first time that the process comes to this directory.
void remove_stale_files_once(const std::string & directory);

} // namespace penelope
