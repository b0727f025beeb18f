// Runs a target on its seeds and on the files of a folder:   fuzz.NAME [CASES]
// Or writes the seeds as files, for libFuzzer to start from: fuzz.NAME --seeds FOLDER
#include "base/error.h"
#include "base/log.h"
#include "target.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace penelope;
namespace fs = std::filesystem;

namespace {

void run(const std::string & name, const std::string & bytes) {
    std::string outcome = "accepted";
    try {
        fuzz::run_input(bytes);
    } catch (const Error & error) {
        outcome = error.message();
    }
    std::printf("%s: %s\n", name.c_str(), outcome.c_str());
    std::fflush(stdout);
}

} // namespace

int main(int argc, char ** argv) {
    log_set_level(LogLevel::error);
    const std::vector<std::string> seeds = fuzz::seeds();
    if (argc == 3 && std::strcmp(argv[1], "--seeds") == 0) {
        fs::create_directories(argv[2]);
        for (size_t i = 0; i < seeds.size(); i++) {
            std::ofstream(fs::path(argv[2]) / ("seed-" + std::to_string(i)), std::ios::binary) << seeds[i];
        }
        return 0;
    }
    for (size_t i = 0; i < seeds.size(); i++) {
        run("seed " + std::to_string(i), seeds[i]);
    }
    std::vector<fs::path> cases;
    if (argc > 1 && fs::is_directory(argv[1])) {
        std::copy(fs::directory_iterator(argv[1]), {}, std::back_inserter(cases));
    }
    std::sort(cases.begin(), cases.end());
    for (const fs::path & path : cases) {
        run(path.filename().string(), test::read_bytes(path));
    }
    return 0;
}
