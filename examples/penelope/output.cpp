#include "output.h"

#include "base/markdown_table.h"
#include "base/number_text.h"

#include <algorithm>

namespace penelope {

namespace {

std::string cell_text(const OrderedJson & value) {
    if (value.is_null()) {
        return "";
    }
    if (value.is_string()) {
        return value.get<std::string>();
    }
    if (value.is_number_float()) {
        return fixed(value.get<double>(), 2);
    }
    return dump_json(value);
}

std::string csv_field(const std::string & text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string out = "\"";
    for (const char c : text) {
        out += c == '"' ? "\"\"" : std::string(1, c);
    }
    return out + "\"";
}

using Cells = std::vector<std::vector<std::string>>;

std::string csv_table(const std::vector<std::string> & columns, const Cells & cells) {
    std::string out;
    const auto  add = [&out](const std::vector<std::string> & fields) {
        for (size_t i = 0; i < fields.size(); ++i) {
            out += (i > 0 ? "," : "") + csv_field(fields[i]);
        }
        out += "\n";
    };
    add(columns);
    for (const auto & row : cells) {
        add(row);
    }
    return out;
}

} // namespace

OrderedJson error_json(const Error & error) {
    return { { "status", "error" },
             { "kind", error_kind_name(error.kind) },
             { "message", error.message() },
             { "hint", error.hint } };
}

TableFormat parse_table_format(const std::string & name) {
    return name == "csv" ? TableFormat::csv : name == "json" ? TableFormat::json : TableFormat::markdown;
}

std::string format_table(const std::vector<OrderedJson> & rows, TableFormat format) {
    if (format == TableFormat::json) {
        return dump_json(OrderedJson(rows), 2) + "\n";
    }
    if (rows.empty()) {
        return "";
    }
    std::vector<std::string> columns;
    std::vector<bool>        numeric;
    for (const auto & [key, value] : rows[0].items()) {
        columns.push_back(key);
        numeric.push_back(std::any_of(rows.begin(), rows.end(),
                                      [&k = key](const OrderedJson & row) { return row.at(k).is_number(); }));
    }
    Cells cells;
    for (const OrderedJson & row : rows) {
        std::vector<std::string> fields;
        for (const std::string & column : columns) {
            fields.push_back(cell_text(row.at(column)));
        }
        cells.push_back(std::move(fields));
    }
    return format == TableFormat::csv ? csv_table(columns, cells) : MarkdownTable{ columns, numeric, cells }.text(true);
}

} // namespace penelope
