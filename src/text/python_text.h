// Texts as Python treats them, where chat templates depend on it.
#pragma once

#include <string_view>

namespace penelope {

// str.lstrip() and str.rstrip(): without the white space of Unicode at the edges, which is more than that of C.
std::string_view python_lstrip(std::string_view text);
std::string_view python_rstrip(std::string_view text);

} // namespace penelope
