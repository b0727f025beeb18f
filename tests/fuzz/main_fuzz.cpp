// The entry points of libFuzzer.
#include "base/error.h"
#include "base/log.h"
#include "target.h"

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
