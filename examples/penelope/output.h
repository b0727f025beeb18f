// The forms results take on stdout: JSON objects as scripts rely on them, and tables in Markdown, CSV or JSON.
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <string>
#include <vector>

namespace penelope {

// {"status":"error","kind","message","hint"}
OrderedJson error_json(const Error & error);

enum class TableFormat { markdown, csv, json };

// Throws nothing: the names are those of the option table.
TableFormat parse_table_format(const std::string & name);

// Rows of objects with the same keys as a table; the keys of the first row give the columns and their order. Numbers
// are right-aligned in Markdown.
std::string format_table(const std::vector<OrderedJson> & rows, TableFormat format);

} // namespace penelope
