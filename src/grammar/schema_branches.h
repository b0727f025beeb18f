// Whether the branches of a oneOf exclude each other, so far as that can be seen from types and constants.
#pragma once

#include "base/json.h"

#include <functional>

namespace penelope {

bool has_type(const OrderedJson & value, const std::string & type); // in the words of JSON Schema

// resolve: the schema a $ref points to.
bool branches_are_disjoint(const OrderedJson &                                             branches,
                           const std::function<OrderedJson(const std::string & pointer)> & resolve);

} // namespace penelope
