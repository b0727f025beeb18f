// Mutates valid input.
#pragma once

#include <random>
#include <string>

namespace penelope::fuzz {

// GGUF files: mostly changes one number of an otherwise valid header (count, size, value, dimension, type or offset),
// because random bytes rarely get past the first checks. Other files: changes, removes or duplicates ranges of bytes.
std::string damaged(std::string bytes, std::minstd_rand & random);

} // namespace penelope::fuzz
