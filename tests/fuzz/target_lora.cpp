// A LoRA, through loading beside its backbone and one token.
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    LoadOptions load;
    load.base  = tiny_backbone();
    load.loras = { { as_file("input.gguf", bytes), 1.0f } };
    compute_a_token(load);
}

std::vector<std::string> seeds() {
    return { test::read_bytes(tiny_lora()) };
}

} // namespace penelope::fuzz
