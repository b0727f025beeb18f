// Runs a target on its seeds, all of which it has to accept, and on the files of a folder: fuzz.NAME [CASES]
// On damaged seeds, for some seconds, blind to what they reach: fuzz.NAME --random SECONDS SEED FILE
//   FILE holds the input that is running, so that one that ends the process is there afterwards
// Or writes the seeds as files, for libFuzzer to start from:    fuzz.NAME --seeds FOLDER
#include "base/error.h"
#include "base/log.h"
#include "mutate.h"
#include "target.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

using namespace penelope;
namespace fs = std::filesystem;

namespace {

// Whether it was accepted.
bool run(const std::string & name, const std::string & bytes) {
    std::string outcome;
    try {
        fuzz::run_input(bytes);
    } catch (const Error & error) {
        outcome = error.message();
    }
    std::printf("%s: %s\n", name.c_str(), outcome.empty() ? "accepted" : outcome.c_str());
    std::fflush(stdout);
    return outcome.empty();
}

int run_random(const std::vector<std::string> & seeds, double seconds, unsigned seed, const std::string & path) {
    using Clock = std::chrono::steady_clock;
    std::minstd_rand random(seed);
    const auto       end   = Clock::now() + std::chrono::duration<double>(seconds);
    size_t           n_run = 0, n_accepted = 0;
    for (; Clock::now() < end; n_run++) {
        const std::string input = fuzz::damaged(seeds[random() % seeds.size()], random);
        std::ofstream(path, std::ios::binary) << input;
        try {
            fuzz::run_input(input);
            n_accepted++;
        } catch (const Error &) {
        }
    }
    fs::remove(path);
    std::printf("%zu inputs, %zu accepted\n", n_run, n_accepted);
    return 0;
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
    if (argc == 5 && std::strcmp(argv[1], "--random") == 0) {
        return run_random(seeds, std::atof(argv[2]), unsigned(std::atoi(argv[3])), argv[4]);
    }
    bool all_good = true; // a seed that is refused leads nowhere
    for (size_t i = 0; i < seeds.size(); i++) {
        all_good = run("seed " + std::to_string(i), seeds[i]) && all_good;
    }
    std::vector<fs::path> cases;
    if (argc > 1 && fs::is_directory(argv[1])) {
        std::copy(fs::directory_iterator(argv[1]), {}, std::back_inserter(cases));
    }
    std::sort(cases.begin(), cases.end());
    for (const fs::path & path : cases) {
        run(path.filename().string(), test::read_bytes(path));
    }
    return all_good ? 0 : 1;
}
