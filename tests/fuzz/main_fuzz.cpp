// The entry points of libFuzzer.
#include "base/error.h"
#include "base/log.h"
#include "mutate.h"
#include "target.h"

#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t * data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
    penelope::log_set_level(penelope::LogLevel::error);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t * data, size_t size) {
    try {
        penelope::fuzz::run_input(std::string(reinterpret_cast<const char *>(data), size));
    } catch (const penelope::Error &) {
    }
    return 0;
}

// Ours for GGUF files, libFuzzer's own for the rest.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t * data, size_t size, size_t max_size, unsigned int seed) {
    if (size < 4 || std::memcmp(data, "GGUF", 4) != 0 || seed % 8 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    std::minstd_rand  random(seed);
    const std::string changed =
        penelope::fuzz::damaged(std::string(reinterpret_cast<const char *>(data), size), random);
    const size_t n = std::min(changed.size(), max_size);
    std::memcpy(data, changed.data(), n);
    return n;
}
