// The keywords of JSON Schema that are understood, and the types they speak of.
#pragma once

#include "base/json.h"

#include <string>
#include <vector>

namespace penelope {

struct SchemaKeyword {
    std::string name;
    std::string type; // it is about; empty for all
};

const std::vector<SchemaKeyword> & schema_keywords();

// where: the place in the schema. Throws Error(unsupported).
[[noreturn]] void reject_schema(const std::string & where, const std::string & why, const std::string & hint = "");
void              check_schema_keywords(const OrderedJson & schema, const std::string & where); // those we do not know
// The types a schema names, else those its keywords are about; none when nothing is said.
std::vector<std::string> schema_types(const OrderedJson & schema, const std::string & where);

} // namespace penelope
