// Whether the branches of a oneOf exclude each other, so far as that can be seen from types and constants.
#pragma once

#include "base/json.h"

#include <functional>

namespace penelope {

bool has_type(const OrderedJson & value, const std::string & type); // in the words of JSON Schema

// The schema a $ref points to.
using ResolveRef = std::function<const OrderedJson &(const std::string & pointer)>;

// False also where looking would take too long.
bool branches_are_disjoint(const OrderedJson & branches, const ResolveRef & resolve);

} // namespace penelope
