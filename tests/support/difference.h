// How far numbers are from what they should be. Whatever is not finite, on either side, is infinitely far: a NaN, which
// is neither greater nor smaller than anything, cannot slip through. A failed check says where the largest difference
// is.
//
//     CHECK(difference(found, expected) < 1e-4);
//     CHECK(difference(found, expected) <= 1e-3 * largest(expected));
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <ostream>
#include <vector>

namespace penelope::test {

struct Difference {
    double most     = 0; // of all elements; infinite for a value that is not finite
    size_t at       = 0;
    double found    = 0;
    double expected = 0;

    void add(double found_value, double expected_value, size_t index) {
        const double distance = std::fabs(found_value - expected_value);
        const double counted  = std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
        if (counted > most || index == 0) {
            *this = { counted, index, found_value, expected_value };
        }
    }
};

inline bool operator<(const Difference & a, double tolerance) {
    return a.most < tolerance;
}
inline bool operator<=(const Difference & a, double tolerance) {
    return std::isfinite(a.most) && a.most <= tolerance;
}
// The larger of two, to follow the worst of many comparisons.
inline Difference worse(const Difference & a, const Difference & b) {
    return b.most > a.most ? b : a;
}
inline std::ostream & operator<<(std::ostream & out, const Difference & d) {
    return out << d.most << " (element " << d.at << " is " << d.found << ", expected " << d.expected << ")";
}

template <typename A, typename B> Difference difference(const std::vector<A> & found, const std::vector<B> & expected) {
    REQUIRE(found.size() == expected.size());
    Difference result;
    for (size_t i = 0; i < found.size(); i++) {
        result.add(double(found[i]), double(expected[i]), i);
    }
    return result;
}

// The largest magnitude; NaN, with which every comparison fails, when a value is not finite.
template <typename T> double largest(const std::vector<T> & values) {
    double most = 0;
    for (T value : values) {
        if (!std::isfinite(double(value))) {
            return std::numeric_limits<double>::quiet_NaN();
        }
        most = std::fmax(most, std::fabs(double(value)));
    }
    return most;
}

} // namespace penelope::test
