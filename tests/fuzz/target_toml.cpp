// The TOML of a shape for a new backbone.
#include "target.h"
#include "train/random_backbone.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    const RandomBackbone shape = read_backbone_shape(as_file("input.toml", bytes));
    // What is allowed and small is made as well.
    if (int64_t(shape.config.n_layer) * shape.config.n_embd * (shape.config.n_embd + shape.config.n_ff) < 100000) {
        write_random_backbone(shape, 1, folder().file("made.gguf"));
    }
}

std::vector<std::string> seeds() {
    return { "name = \"tiny\"\nlayers = 1\nwidth = 16\nheads = 2\nkv-heads = 1\nffn = 16\ncontext = 64\nrope-base = "
             "1e4\ntied = false\n" };
}

} // namespace penelope::fuzz
