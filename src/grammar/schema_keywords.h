// Supported JSON Schema keywords and the types they apply to.
#pragma once

#include "base/json.h"

#include <string>
#include <vector>

namespace penelope {

struct SchemaKeyword {
    std::string name;
    std::string type; // applies to this type; empty: all
};

const std::vector<SchemaKeyword> & schema_keywords();

// where: path in the schema. Throws Error(unsupported).
[[noreturn]] void reject_schema(const std::string & where, const std::string & why, const std::string & hint = "");
void check_schema_keywords(const OrderedJson & schema, const std::string & where); // rejects unknown keywords
// The types of a schema, else those its keywords apply to; empty if neither says.
std::vector<std::string> schema_types(const OrderedJson & schema, const std::string & where);

} // namespace penelope
