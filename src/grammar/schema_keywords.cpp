#include "grammar/schema_keywords.h"

#include "base/error.h"
#include "base/format.h"

#include <algorithm>

namespace penelope {

namespace {

// Annotations: they do not constrain the value.
constexpr const char * kNotes[] = { "title",    "description", "default",       "examples",    "$schema",
                                    "$id",      "$comment",    "$defs",         "definitions", "deprecated",
                                    "readOnly", "writeOnly",   "discriminator", "id" };
constexpr const char * kTypes[] = { "object", "array", "string", "integer", "number", "boolean", "null" };

} // namespace

const std::vector<SchemaKeyword> & schema_keywords() {
    static const std::vector<SchemaKeyword> table = {
        { "type", "" },
        { "enum", "" },
        { "const", "" },
        { "anyOf", "" },
        { "oneOf", "" },
        { "allOf", "" },
        { "$ref", "" },
        { "properties", "object" },
        { "required", "object" },
        { "additionalProperties", "object" },
        { "items", "array" },
        { "prefixItems", "array" },
        { "minItems", "array" },
        { "maxItems", "array" },
        { "minLength", "string" },
        { "maxLength", "string" },
        { "pattern", "string" },
        { "format", "string" },
        { "minimum", "integer" },
        { "maximum", "integer" },
        { "exclusiveMinimum", "integer" },
        { "exclusiveMaximum", "integer" },
    };
    return table;
}

void reject_schema(const std::string & where, const std::string & why, const std::string & hint) {
    throw Error(ErrorKind::unsupported, "schema " + where + ": " + why, hint);
}

void check_schema_keywords(const OrderedJson & schema, const std::string & where) {
    for (const auto & [name, value] : schema.items()) {
        const std::string & key     = name;
        const bool          is_note = std::find(std::begin(kNotes), std::end(kNotes), key) != std::end(kNotes);
        const auto &        known   = schema_keywords();
        const bool          idle    = (key == "uniqueItems" || key == "nullable") && value == false;
        if (!is_note && !idle &&
            std::none_of(known.begin(), known.end(), [&](const SchemaKeyword & k) { return key == k.name; })) {
            reject_schema(where, in_quotes(key) + " is not supported", "remove it and check the answer afterwards");
        }
    }
}

std::vector<std::string> schema_types(const OrderedJson & schema, const std::string & where) {
    std::vector<std::string> types;
    if (schema.contains("type")) {
        const OrderedJson & named = schema["type"];
        for (const OrderedJson & one : named.is_array() ? named : OrderedJson::array({ named })) {
            const std::string name = one.is_string() ? one.get<std::string>() : "";
            if (std::find(std::begin(kTypes), std::end(kTypes), name) == std::end(kTypes)) {
                reject_schema(where, "unknown type",
                              "expected object, array, string, integer, number, boolean or null");
            }
            types.push_back(name);
        }
        return types;
    }
    for (const SchemaKeyword & keyword : schema_keywords()) {
        if (!keyword.type.empty() && schema.contains(keyword.name) &&
            std::find(types.begin(), types.end(), keyword.type) == types.end()) {
            types.push_back(keyword.type);
        }
    }
    return types;
}

} // namespace penelope
