#include "base/number_text.h"

#include <charconv>
#include <cstdio>

namespace penelope {

std::string fixed(double value, int n_digits) {
    return with_digits(("%." + std::to_string(n_digits) + "f").c_str(), value);
}

std::string with_digits(const char * format, double value) {
    char text[64];
    std::snprintf(text, sizeof(text), format, value);
    return text;
}

std::string shortest_text(double value) {
    char       text[64];
    const auto end = std::to_chars(text, text + sizeof(text), value);
    return std::string(text, end.ptr);
}

double shortest_decimal(float value) {
    char       text[64];
    const auto end    = std::to_chars(text, text + sizeof(text), value);
    double     result = value;
    std::from_chars(text, end.ptr, result);
    return result;
}

} // namespace penelope
