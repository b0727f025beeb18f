#include "base/clock.h"

namespace penelope {

Stopwatch::Stopwatch() : start_(std::chrono::steady_clock::now()) {}

double Stopwatch::elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
}

double Stopwatch::restart() {
    const auto   now     = std::chrono::steady_clock::now();
    const double elapsed = std::chrono::duration<double, std::milli>(now - start_).count();
    start_               = now;
    return elapsed;
}

} // namespace penelope
