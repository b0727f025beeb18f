// A sidecar, through loading beside its backbone and one token.
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    LoadOptions load;
    load.base    = tiny_backbone();
    load.sidecar = as_file("input.gguf", bytes);
    compute_a_token(load);
}

std::vector<std::string> seeds() {
    return { test::read_bytes(tiny_sidecar()) };
}

} // namespace penelope::fuzz
