// A LoRA, through loading beside its backbone and one token; and what else the program makes of it.
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    LoadOptions load;
    load.base              = tiny_backbone();
    const std::string path = as_file("input.gguf", bytes);
    load.loras             = { { path, 1.0f } };
    try_each({ [&] { compute_a_token(load); }, [&] { describe_and_quantize(path); },
               [&] { export_beside_base(path, "merged"); }, [&] { export_beside_base(path, "peft"); } });
}

std::vector<std::string> seeds() {
    return { test::read_bytes(tiny_lora()) };
}

} // namespace penelope::fuzz
