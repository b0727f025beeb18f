// A Hugging Face directory of any architecture, one file of it the input, through conversion and one token.
#include "convert/convert.h"
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

namespace {

// The tiny backbones, as they would come from elsewhere.
const Directories & checkpoints() {
    static const Directories made{ exported(tiny_backbones(), "hf"),
                                   { "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json" } };
    return made;
}

} // namespace

void run_input(const std::string & bytes) {
    if (bytes.empty()) {
        return;
    }
    ConvertOptions options;
    options.dir      = checkpoints().with(bytes);
    options.out_path = folder().file("output.gguf");
    options.force    = true;
    convert_directory(options);
    LoadOptions load;
    load.base = options.out_path;
    compute_a_token(load);
}

std::vector<std::string> seeds() {
    return checkpoints().files();
}

} // namespace penelope::fuzz
