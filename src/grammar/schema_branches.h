// Checks that the branches of oneOf exclude each other, as far as types and constants show.
#pragma once

#include "base/json.h"

#include <functional>

namespace penelope {

bool has_type(const OrderedJson & value, const std::string & type); // JSON Schema type name

// The schema a $ref points to.
using ResolveRef = std::function<const OrderedJson &(const std::string & pointer)>;

// Also false when the check would take too long.
bool branches_are_disjoint(const OrderedJson & branches, const ResolveRef & resolve);

} // namespace penelope
