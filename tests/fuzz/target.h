// Interface of a fuzz target: arbitrary bytes are given to a parser of the program. Throwing Error is correct; any
// other exception, a signal, a sanitizer report or a timeout is a finding.
//
// Each target_NAME.cpp defines both functions. It is linked with main_fuzz.cpp and libFuzzer (preset fuzz,
// scripts/fuzz), and with main_replay.cpp into a test that runs its seeds and the earlier findings in cases/NAME.
#pragma once

#include "support/temp_dir.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope::fuzz {

// Throws Error, or does nothing.
void run_input(const std::string & bytes);

// Valid inputs to mutate.
std::vector<std::string> seeds();

// Temporary directory of this process.
const test::TempDir & folder();

// Writes the bytes to a file of this name in folder(), replacing it; returns the path.
std::string as_file(const std::string & name, const std::string & bytes);

// Runs every step even if others throw; then rethrows the first Error.
void try_each(const std::vector<std::function<void()>> & steps);

// Directories in which one file is replaced by the input; the first byte selects directory and file.
struct Directories {
    std::vector<std::string> paths; // good ones
    std::vector<std::string> names; // of files in each, as far as they are there

    // A new copy of the selected directory with the input as the selected file. The input must not be empty.
    std::string with(const std::string & bytes) const;
    // All their files, as inputs.
    std::vector<std::string> files() const;
};

} // namespace penelope::fuzz
