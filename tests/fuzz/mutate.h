// Damaged input made from good input.
#pragma once

#include <random>
#include <string>

namespace penelope::fuzz {

// In a GGUF file mostly lies in an otherwise valid header: a count, size, value, dimension, type or offset becomes
// another number, because random bytes alone seldom get past the checks that the whole is a GGUF file. Elsewhere bytes
// and stretches of them change, go or come twice.
std::string damaged(std::string bytes, std::minstd_rand & random);

} // namespace penelope::fuzz
