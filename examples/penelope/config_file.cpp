#include "config_file.h"

#include "options.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace penelope {

namespace {

// Shortest text that reads back as the same number.
std::string number_text(double value) {
    char       buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
    return std::string(buffer, end.ptr);
}

std::string scalar_text(const toml::node & node, const std::string & where) {
    if (const auto * text = node.as_string()) {
        return text->get();
    }
    if (const auto * integer = node.as_integer()) {
        return std::to_string(integer->get());
    }
    if (const auto * number = node.as_floating_point()) {
        return number_text(number->get());
    }
    if (const auto * boolean = node.as_boolean()) {
        return boolean->get() ? "true" : "false";
    }
    throw UsageError(where + ": tables and dates are not understood", "a key is a long flag name: top-k = 40");
}

} // namespace

std::vector<ConfigEntry> read_config_file(const std::string & path) {
    if (!std::filesystem::is_regular_file(path)) {
        throw UsageError(path + ": no such config file", "--config takes a TOML file whose keys are long flag names");
    }
    toml::table table;
    try {
        table = toml::parse_file(path);
    } catch (const toml::parse_error & error) {
        throw UsageError(path + ", line " + std::to_string(error.source().begin.line) + ": " +
                         std::string(error.description()));
    }
    std::vector<ConfigEntry> entries;
    for (const auto & [key, node] : table) {
        ConfigEntry       entry{ std::string(std::string_view(key)), {}, static_cast<int>(node.source().begin.line) };
        const std::string where = path + ", line " + std::to_string(entry.line) + ": '" + entry.key + "'";
        if (const auto * array = node.as_array()) {
            for (const toml::node & element : *array) {
                entry.values.push_back(scalar_text(element, where));
            }
        } else {
            entry.values.push_back(scalar_text(node, where));
        }
        entries.push_back(std::move(entry));
    }
    std::sort(entries.begin(), entries.end(),
              [](const ConfigEntry & a, const ConfigEntry & b) { return a.line < b.line; });
    return entries;
}

} // namespace penelope
