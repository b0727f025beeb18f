// Comma-separated values as spreadsheets write them (RFC 4180): cells in quotes may hold commas, newlines and doubled quotes.
#pragma once

#include <string>
#include <vector>

namespace penelope {

struct CsvRow {
    std::vector<std::string> cells;
    size_t                   line; // it starts on, from 1
};

// Rows without any text are left out. Throws Error(format) naming the line of a quote that does not end.
std::vector<CsvRow> parse_csv(const std::string & text, const std::string & name);

} // namespace penelope
