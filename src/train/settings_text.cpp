// Writes settings as config.toml, which --config and --resume read.
#include "base/path.h"
#include "train/setting_table.h"

#include <toml++/toml.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace penelope {

namespace {

// toml++ prints 17 digits, e.g. 0.050000000000000003; shorten them. Every value is on one line.
std::string with_short_numbers(const std::string & toml) {
    std::istringstream lines(toml);
    std::string        out;
    for (std::string line; std::getline(lines, line);) {
        const size_t at     = line.find(" = ") + 3;
        char *       end    = nullptr;
        const double number = std::strtod(line.c_str() + at, &end);
        char         text[32];
        std::snprintf(text, sizeof(text), "%.15g", number);
        const bool is_long = at != std::string::npos + 3 && *end == '\0' && line.size() - at > 15;
        const bool is_same = std::strtod(text, nullptr) == number && std::strchr(text, '.') != nullptr;
        out += (is_long && is_same ? line.substr(0, at) + text : line) + "\n";
    }
    return out;
}

// A run can be resumed from any directory.
std::string absolute(const std::string & path) {
    return absolute_path(path).string();
}

void insert(toml::table & table, const SettingRow & row, const OrderedJson & value) {
    if (value.is_string()) {
        const std::string text = value.get<std::string>();
        if (!text.empty()) { // empty: not set
            table.insert(row.name, row.is_path ? absolute(text) : text);
        }
    } else if (value.is_boolean()) {
        table.insert(row.name, value.get<bool>());
    } else if (value.is_number_float()) {
        table.insert(row.name, value.get<double>());
    } else if (value.is_number()) {
        table.insert(row.name, value.get<int64_t>());
    } else {
        table.insert(row.name, setting_text(row, value));
    }
}

} // namespace

std::string settings_toml(const TrainSettings & settings) {
    toml::table table;
    if (settings.shape_path.empty()) { // else the backbone is made from the shape
        table.insert("model", absolute(settings.model.base));
    }
    for (const SettingRow & row : setting_table()) {
        if (row.use != SettingUse::none && (!row.applies || row.applies(settings))) {
            insert(table, row, setting_json(row, settings));
        }
    }
    // Only basic strings with escapes: literal and multi-line strings lose a leading newline or end too early.
    constexpr auto several_forms =
        toml::format_flags::allow_literal_strings | toml::format_flags::allow_multi_line_strings;
    std::ostringstream out;
    out << toml::toml_formatter(table, toml::toml_formatter::default_flags & ~several_forms) << "\n";
    return with_short_numbers(out.str());
}

} // namespace penelope
