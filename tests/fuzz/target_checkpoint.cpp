// A checkpoint, as resuming reads it.
#include "target.h"
#include "train/checkpoint.h"

namespace penelope::fuzz {

namespace {

Optimizer & optimizer() {
    static Backend   cpu(find_device("CPU"), 1);
    static Optimizer instance(cpu, { { "lora", 0.01, { { "a", { 3, 5 } } } }, { "rows", 0.0, { { "b", { 9 } } } } });
    return instance;
}

} // namespace

void run_input(const std::string & bytes) {
    const std::string path = as_file("input.gguf", bytes);
    load_checkpoint(path, optimizer(), CheckpointContents::weights_and_moments);
}

std::vector<std::string> seeds() {
    RunState state;
    state.update    = 12;
    state.validated = 10;
    state.best      = { 10, 0.5, 1.25 };
    state.settings  = R"({"method": "penelope", "seed": 1})";
    save_checkpoint(folder().file("seed.gguf"), state, optimizer(), CheckpointContents::weights_and_moments);
    return { test::read_bytes(folder().file("seed.gguf")) };
}

} // namespace penelope::fuzz
