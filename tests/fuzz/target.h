// What a fuzz target is: bytes that may be anything, given to the part of the program that reads such bytes. An Error
// is the right answer to most of them; any other exception, a signal, a report of a sanitizer or a refusal to end is a
// finding.
//
// Each target_NAME.cpp defines both functions. It is linked with main_fuzz.cpp and libFuzzer (preset fuzz,
// scripts/fuzz), and with main_replay.cpp into a test that runs its seeds and the findings kept in cases/NAME.
#pragma once

#include "support/temp_dir.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope::fuzz {

// Throws Error, or does nothing.
void run_input(const std::string & bytes);

// Good inputs to start from.
std::vector<std::string> seeds();

// The files of this process: what targets read, and what they made.
const test::TempDir & folder();

// As a file of that name, written anew each time.
std::string as_file(const std::string & name, const std::string & bytes);

// Takes every step, whatever the others throw; then the first Error, if there was one.
void try_each(const std::vector<std::function<void()>> & steps);

// Directories of which one file is the input: its first byte says in which, and which of `names` that is.
struct Directories {
    std::vector<std::string> paths; // good ones
    std::vector<std::string> names; // of files in each, as far as they are there

    // A copy of one of them with the input in place of its file; anew each time. The input has a first byte.
    std::string with(const std::string & bytes) const;
    // All their files, as inputs.
    std::vector<std::string> files() const;
};

} // namespace penelope::fuzz
