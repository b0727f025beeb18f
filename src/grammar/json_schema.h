// JSON Schema as a grammar: every text of it is JSON that the schema takes. Not every such JSON is one of them:
// properties come in the order of the schema, those it does not name are left out, and there is no white space but one
// after : and ,.
//
// Understood: type, enum, const, properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
// minLength, maxLength, pattern, format (date, time, date-time, uuid), minimum and maximum of integers, anyOf, oneOf
// whose branches differ in type or in a constant, allOf of one, $ref within the schema (also to itself). Any other
// keyword that asks for something is refused.
#pragma once

#include "base/json.h"
#include "grammar/grammar.h"

namespace penelope {

// Throws Error(unsupported), naming the place in the schema and the keyword.
Grammar json_schema_grammar(const OrderedJson & schema);

// Any object: what "response_format": {"type": "json_object"} asks for.
Grammar json_object_grammar();

} // namespace penelope
