// A sidecar, through loading beside its backbone and one token; and what else the program makes of it.
#include "target.h"
#include "tiny_model.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    LoadOptions load;
    load.base    = tiny_backbone();
    load.sidecar = as_file("input.gguf", bytes);
    try_each({ [&] { compute_a_token(load); }, [&] { describe_and_quantize(load.sidecar); },
               [&] { export_beside_base(load.sidecar, "merged"); },
               [&] { export_beside_base(load.sidecar, "penelope"); } });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const std::string & path : tiny_sidecars()) {
        all.push_back(test::read_bytes(path));
    }
    return all;
}

} // namespace penelope::fuzz
