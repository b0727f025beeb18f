// Files the tests need but the repository does not carry. Their paths come from the environment, which ctest sets
// (tests/CMakeLists.txt). Without the file a test case is skipped with a message, and ctest shows the test as skipped
// if all its cases were; with PENELOPE_TEST_REQUIRE_FILES=1, as in scripts/test, it runs and fails.
//
//     TEST_CASE("greedy answer" * doctest::skip(lacks_smollm2())) { auto path = smollm2_path(); ... }
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace penelope::test {

// The value of an environment variable, "" if it is not set.
inline std::string environment(const char * name) {
    const char * value = std::getenv(name);
    return value ? value : "";
}

// The path in an environment variable; throws if nothing is there.
inline std::string required_path(const char * variable, const char * how) {
    const std::string path = environment(variable);
    if (path.empty() || !std::filesystem::exists(path)) {
        throw std::runtime_error(std::string(variable) + "='" + path + "': nothing there; " + how);
    }
    return path;
}

// True if the path in an environment variable is missing and may be; says so.
inline bool lacks(const char * variable, const char * how) {
    if (environment("PENELOPE_TEST_REQUIRE_FILES") == "1") {
        return false;
    }
    const std::string path = environment(variable);
    if (!path.empty() && std::filesystem::exists(path)) {
        return false;
    }
    std::printf("skipped: %s='%s': nothing there; %s\n", variable, path.c_str(), how);
    return true;
}

constexpr const char * how_smollm2 = "run ggml/fetch smollm2";
constexpr const char * how_vocab   = "run ggml/fetch llama.cpp";

// SmolLM2-135M-Instruct.Q4_1.gguf
inline bool lacks_smollm2() {
    return lacks("PENELOPE_TEST_SMOLLM2", how_smollm2);
}
inline std::string smollm2_path() {
    return required_path("PENELOPE_TEST_SMOLLM2", how_smollm2);
}

// The folder with llama.cpp's ggml-vocab-*.gguf fixtures
inline bool lacks_vocab_dir() {
    return lacks("PENELOPE_TEST_VOCAB_DIR", how_vocab);
}
inline std::string vocab_dir() {
    return required_path("PENELOPE_TEST_VOCAB_DIR", how_vocab);
}

} // namespace penelope::test
