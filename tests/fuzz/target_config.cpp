// The TOML file of --config.
#include "examples/penelope/config_file.h"
#include "target.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    static const std::string other  = as_file("other.toml", "temp = 0.5\nseed = 3\n");
    static int               n_read = 0; // the program keeps what it read by the file's name
    const std::string        path   = as_file("input-" + std::to_string(n_read++) + ".toml", bytes);
    read_config_file(path);
    std::remove(path.c_str());
}

std::vector<std::string> seeds() {
    return {
        "include = \"other.toml\"\nmodel = \"a.gguf\"\nrates = [ 1e-4, 2e-5 ]\nupdates = 300 # all\nfull = true\n"
    };
}

} // namespace penelope::fuzz
