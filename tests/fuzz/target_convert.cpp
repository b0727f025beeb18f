// A Hugging Face directory of which one file is the input: its first byte says which.
#include "convert/convert.h"
#include "target.h"
#include "tiny_model.h"

#include <filesystem>

namespace penelope::fuzz {

namespace fs = std::filesystem;

namespace {

const char * const kNames[] = { "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json" };
constexpr size_t   n_names  = sizeof(kNames) / sizeof(kNames[0]);

// The tiny backbone, as it would come from elsewhere.
const std::string & source() {
    static const std::string path = [] {
        ExportOptions options;
        options.as       = "hf";
        options.in_path  = tiny_backbone();
        options.out_path = folder().file("hf");
        export_sidecar(options);
        return options.out_path;
    }();
    return path;
}

} // namespace

void run_input(const std::string & bytes) {
    if (bytes.empty()) {
        return;
    }
    const std::string dir = folder().file("input");
    fs::remove_all(dir);
    fs::copy(source(), dir, fs::copy_options::recursive);
    const size_t which = static_cast<unsigned char>(bytes[0]) % n_names;
    as_file(std::string("input/") + kNames[which], bytes.substr(1));
    ConvertOptions options;
    options.dir      = dir;
    options.out_path = folder().file("output.gguf");
    options.force    = true;
    convert_directory(options);
    LoadOptions load;
    load.base = options.out_path;
    compute_a_token(load);
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (size_t i = 0; i < n_names; i++) {
        const fs::path path = fs::path(source()) / kNames[i];
        if (fs::exists(path)) {
            all.push_back(char(i) + test::read_bytes(path));
        }
    }
    return all;
}

} // namespace penelope::fuzz
