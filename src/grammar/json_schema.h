// Translates JSON Schema into a grammar. Every text of the grammar is valid for the schema, but not every valid JSON is
// a text of the grammar: properties come in the order of the schema, unnamed properties are left out, and the only
// white space is one optional space after : and ,.
//
// Supported: type, enum, const, properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
// minLength, maxLength, pattern, format (date, time, date-time, uuid), minimum and maximum of integers, anyOf, oneOf
// whose branches differ in type or in a constant, allOf with one entry, $ref within the schema (also recursive). Other
// keywords that constrain the value are rejected.
#pragma once

#include "base/json.h"
#include "grammar/grammar.h"

namespace penelope {

// Throws Error(unsupported) with the path in the schema and the keyword.
Grammar json_schema_grammar(const OrderedJson & schema);

// Any object, for "response_format": {"type": "json_object"}.
Grammar json_object_grammar();

} // namespace penelope
