#include "base/value_limits.h"

#include "base/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace penelope {

namespace {

// "lo..hi" with either end missing.
std::pair<double, double> number_limits(const std::string & limits) {
    const double infinity = std::numeric_limits<double>::infinity();
    const size_t dots     = limits.find("..");
    if (dots == std::string::npos) {
        return { -infinity, infinity };
    }
    const std::string low  = limits.substr(0, dots);
    const std::string high = limits.substr(dots + 2);
    return { low.empty() ? -infinity : std::stod(low), high.empty() ? infinity : std::stod(high) };
}

std::string limits_text(const std::string & limits) {
    const auto [low, high] = number_limits(limits);
    const size_t dots      = limits.find("..");
    const bool   has_low   = low > -std::numeric_limits<double>::infinity();
    const bool   has_high  = high < std::numeric_limits<double>::infinity();
    if (has_low && has_high) {
        return "must be between " + limits.substr(0, dots) + " and " + limits.substr(dots + 2);
    }
    return has_low ? "must be >= " + limits.substr(0, dots) : "must be <= " + limits.substr(dots + 2);
}

template <typename T>
std::string check(const std::string & value, const std::string & limits, const std::string & what) {
    T          parsed{};
    const auto result = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (result.ec != std::errc() || result.ptr != value.data() + value.size()) {
        return "'" + value + "' is not " + what;
    }
    const auto [low, high] = number_limits(limits);
    const double as_double = static_cast<double>(parsed);
    if (!std::isfinite(as_double)) {
        return "'" + value + "' is not a finite number";
    }
    if (!(as_double >= low && as_double <= high)) {
        return "'" + value + "' " + limits_text(limits);
    }
    return "";
}

} // namespace

std::string check_integer(const std::string & value, const std::string & limits) {
    return check<int64_t>(value, limits, "a whole number");
}

std::string check_number(const std::string & value, const std::string & limits) {
    return check<double>(value, limits, "a number");
}

std::string check_choice(const std::string & value, const std::string & limits) {
    const std::vector<std::string> choices = split(limits, '|');
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) {
        return "";
    }
    return "'" + value + "' is not one of " + join(choices, ", ");
}

} // namespace penelope
