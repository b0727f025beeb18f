// Floating-point numbers as text.
#pragma once

#include <string>

namespace penelope {

std::string fixed(double value, int n_digits); // "3.14"

// printf's format of one number: with_digits("%.1f %%", 12.5) is "12.5 %".
std::string with_digits(const char * format, double value);

// The shortest text that reads back as the same number.
std::string shortest_text(double value);

// The double that such a text of the float reads as: 0.05, not 0.05000000074505806.
double shortest_decimal(float value);

} // namespace penelope
