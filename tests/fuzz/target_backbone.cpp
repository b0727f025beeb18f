// A backbone or bundle in a GGUF file, through loading and one token; and what else the program makes of it.
#include "convert/convert.h"
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    LoadOptions load;
    load.base = as_file("input.gguf", bytes);
    ExportOptions hf;
    hf.as       = "hf";
    hf.in_path  = load.base;
    hf.out_path = folder().file("exported-hf");
    hf.force    = true;
    try_each(
        { [&] { compute_a_token(load); }, [&] { describe_and_quantize(load.base); }, [&] { export_sidecar(hf); } });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const std::string & path : tiny_backbones()) {
        all.push_back(test::read_bytes(path));
    }
    for (const char * type : { "F16", "Q8_0", "Q4_0" }) {
        QuantizeOptions quantize;
        quantize.in_path  = tiny_backbone();
        quantize.out_path = folder().file(std::string(type) + ".gguf");
        quantize.type     = type;
        quantize_file(quantize);
        all.push_back(test::read_bytes(quantize.out_path));
    }
    for (const std::string & sidecar : tiny_sidecars()) {
        ExportOptions bundle;
        bundle.as        = "bundle";
        bundle.in_path   = sidecar;
        bundle.base_path = tiny_backbone();
        bundle.out_path  = folder().file("bundle.gguf");
        bundle.force     = true;
        export_sidecar(bundle);
        all.push_back(test::read_bytes(bundle.out_path));
    }
    return all;
}

} // namespace penelope::fuzz
