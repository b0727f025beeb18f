// Runs something that must throw an Error, and gives it back to be looked at; what a text says.
#pragma once

#include "base/error.h"

#include <doctest/doctest.h>

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

// The same of a text that has to contain it: shows the text where it does not.
inline bool says(const std::string & text, const std::string & part) {
    const bool found = contains(text, part);
    if (!found) {
        MESSAGE("expected '" << part << "' in: " << text);
    }
    return found;
}

} // namespace penelope::test
