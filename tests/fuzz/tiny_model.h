// The smallest model there can be, for targets that change one of its files and compute a token on it.
#pragma once

#include "infer/engine.h"

#include <string>

namespace penelope::fuzz {

// Paths; made on the first call. One layer of width 16, a byte-level vocabulary, some 30 kB.
const std::string & tiny_backbone();
const std::string & tiny_sidecar(); // two latent steps, with a LoRA pair
const std::string & tiny_lora();

void compute_a_token(const LoadOptions & load);

} // namespace penelope::fuzz
