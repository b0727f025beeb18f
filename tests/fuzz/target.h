// What a fuzz target is: bytes that may be anything, given to the part of the program that reads such bytes. An Error is the
// right answer to most of them; any other exception, a signal, a report of a sanitizer or a refusal to end is a finding.
//
// Each target_NAME.cpp defines both functions. It is linked with main_fuzz.cpp and libFuzzer (preset fuzz, scripts/fuzz), and
// with main_replay.cpp into a test that runs its seeds and the findings kept in cases/NAME.
#pragma once

#include "support/temp_dir.h"

#include <cstdint>
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

} // namespace penelope::fuzz
