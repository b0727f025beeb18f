// Whether a text is a value within limits, as tables of options and settings write them: numbers "0..8" with either
// end optional, choices "a|b". The functions return what is wrong, "'9' must be between 0 and 8", or "".
#pragma once

#include <string>

namespace penelope {

std::string check_integer(const std::string & value, const std::string & limits);
std::string check_number(const std::string & value, const std::string & limits);
std::string check_choice(const std::string & value, const std::string & limits);

} // namespace penelope
