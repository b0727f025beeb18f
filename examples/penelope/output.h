// Output on stdout: JSON errors, and tables in Markdown, CSV or JSON.
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <string>
#include <vector>

namespace penelope {

// {"status":"error","kind","message","hint"}
OrderedJson error_json(const Error & error);

enum class TableFormat { markdown, csv, json };

// The name was already checked by the option table.
TableFormat parse_table_format(const std::string & name);

// Formats objects with the same keys as a table; the keys of the first object are the columns. Numbers
// are right-aligned in Markdown.
std::string format_table(const std::vector<OrderedJson> & rows, TableFormat format);

} // namespace penelope
