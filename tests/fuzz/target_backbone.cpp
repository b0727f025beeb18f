// A backbone or bundle in a GGUF file, through loading and one token.
#include "convert/convert.h"
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    LoadOptions load;
    load.base = as_file("input.gguf", bytes);
    compute_a_token(load);
}

std::vector<std::string> seeds() {
    QuantizeOptions quantize;
    quantize.in_path  = tiny_backbone();
    quantize.out_path = folder().file("f16.gguf");
    quantize.type     = "F16";
    quantize_file(quantize);
    ExportOptions bundle;
    bundle.as        = "bundle";
    bundle.in_path   = tiny_sidecar();
    bundle.base_path = tiny_backbone();
    bundle.out_path  = folder().file("bundle.gguf");
    export_sidecar(bundle);
    return { test::read_bytes(tiny_backbone()), test::read_bytes(quantize.out_path),
             test::read_bytes(bundle.out_path) };
}

} // namespace penelope::fuzz
