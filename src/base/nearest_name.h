// The known name a misspelt one was meant to be, for hints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penelope {

// The candidate most similar to the name; "" if none is similar.
std::string nearest_name(std::string_view name, const std::vector<std::string> & candidates);

} // namespace penelope
