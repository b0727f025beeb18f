// Runs something that must throw an Error, and gives it back to be looked at.
#pragma once

#include "base/error.h"

#include <stdexcept>
#include <string>

namespace penelope::test {

// The Error `run` throws. Another exception passes through; none at all is a std::logic_error.
template <typename F> Error error_of(F && run) {
    try {
        run();
    } catch (const Error & error) {
        return error;
    }
    throw std::logic_error("expected an Error, nothing was thrown");
}

inline bool contains(const std::string & text, const std::string & part) {
    return text.find(part) != std::string::npos;
}

} // namespace penelope::test
