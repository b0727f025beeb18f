// Of src/base/number_text.h what the page needs. The C++ library of Debian 12's Emscripten has no std::to_chars() for
// floating point, so the shortest text is searched for.
#include "base/number_text.h"

#include <cstdio>
#include <cstdlib>

namespace penelope {

double shortest_decimal(float value) {
    constexpr int max_digits = 9; // tell any two floats apart
    char          text[64];
    for (int n_digits = 1; n_digits <= max_digits; n_digits++) {
        std::snprintf(text, sizeof(text), "%.*g", n_digits, double(value));
        if (std::strtof(text, nullptr) == value) {
            break;
        }
    }
    return std::strtod(text, nullptr);
}

} // namespace penelope
