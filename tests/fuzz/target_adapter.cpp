// A Penelope directory of any method with a PEFT directory in it, one file of it the input, through conversion and one
// token.
#include "convert/convert.h"
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

namespace {

const Directories & adapters() {
    static const Directories made{ exported(tiny_sidecars(), "penelope", tiny_backbone()),
                                   { "penelope_config.json", "penelope.safetensors", "lora/adapter_config.json",
                                     "lora/adapter_model.safetensors" } };
    return made;
}

} // namespace

void run_input(const std::string & bytes) {
    if (bytes.empty()) {
        return;
    }
    ConvertOptions options;
    options.dir       = adapters().with(bytes);
    options.base_path = tiny_backbone();
    options.out_path  = folder().file("output.gguf");
    options.force     = true;
    convert_directory(options);
    LoadOptions load;
    load.base    = options.base_path;
    load.sidecar = options.out_path;
    compute_a_token(load);
}

std::vector<std::string> seeds() {
    return adapters().files();
}

} // namespace penelope::fuzz
