// Comma-separated values as spreadsheets write them (RFC 4180): quoted cells may contain commas, newlines and doubled
// quotes.
#pragma once

#include <string>
#include <vector>

namespace penelope {

struct CsvRow {
    std::vector<std::string> cells;
    size_t                   line; // where it starts, from 1
};

// Skips empty rows. Throws Error(format) with the line of an unterminated quote.
std::vector<CsvRow> parse_csv(const std::string & text, const std::string & name);

} // namespace penelope
