// A stopwatch on the monotonic clock.
#pragma once

#include <chrono>

namespace penelope {

class Stopwatch {
  public:
    Stopwatch();

    double elapsed_ms() const; // since construction or the last restart()
    double restart();          // elapsed_ms(), then starts again from zero

  private:
    std::chrono::steady_clock::time_point start_;
};

} // namespace penelope
