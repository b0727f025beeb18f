#include "config_file.h"

#include "base/number_text.h"
#include "base/toml_text.h"
#include "options.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace penelope {

namespace {

std::string scalar_text(const toml::node & node, const std::string & where) {
    if (const auto * text = node.as_string()) {
        return text->get();
    }
    if (const auto * integer = node.as_integer()) {
        return std::to_string(integer->get());
    }
    if (const auto * number = node.as_floating_point()) {
        return shortest_text(number->get());
    }
    if (const auto * boolean = node.as_boolean()) {
        return boolean->get() ? "true" : "false";
    }
    throw UsageError(where + ": tables and dates are not supported", "a key is a long flag name: top-k = 40");
}

constexpr int kMaxIncludes = 8; // nesting depth

// Text of a file, cached: a config file is read twice, and a pipe can be read only once.
const std::string & config_text(const std::string & path) {
    static std::map<std::string, std::string> known;
    const auto                                found = known.find(path);
    if (found != known.end()) {
        return found->second;
    }
    try {
        std::string text   = read_toml_text(path, ErrorKind::usage);
        return known[path] = std::move(text);
    } catch (const Error & error) {
        if (error.kind != ErrorKind::not_found) {
            throw;
        }
        throw UsageError(path + ": config file not found", "--config takes a TOML file whose keys are long flag names");
    }
}

// Adds the entries of a file after those of the files it includes; the last entry of a key wins.
void read_entries(const std::string & path, int depth, std::vector<ConfigEntry> & entries) {
    toml::table table = parse_toml(config_text(path), path, ErrorKind::usage);
    if (const toml::node * included = table.get("include")) {
        const std::string where = path + ", line " + std::to_string(included->source().begin.line) + ": include";
        if (depth == kMaxIncludes) {
            throw UsageError(where + ": include depth exceeds " + std::to_string(kMaxIncludes),
                             "does a file include itself?");
        }
        const std::filesystem::path other = scalar_text(*included, where);
        read_entries((std::filesystem::path(path).parent_path() / other).lexically_normal().string(), depth + 1,
                     entries);
        table.erase("include");
    }
    std::vector<std::pair<toml::source_index, ConfigEntry>> own; // by line: the first error is reported first
    for (const auto & [key, node] : table) {
        const auto        line = node.source().begin.line;
        ConfigEntry       entry{ std::string(std::string_view(key)), {}, path + ", line " + std::to_string(line) };
        const std::string where = entry.where + ": '" + entry.key + "'";
        if (const auto * array = node.as_array()) {
            for (const toml::node & element : *array) {
                entry.values.push_back(scalar_text(element, where));
            }
        } else {
            entry.values.push_back(scalar_text(node, where));
        }
        own.emplace_back(line, std::move(entry));
    }
    std::sort(own.begin(), own.end(), [](const auto & a, const auto & b) { return a.first < b.first; });
    for (auto & [line, entry] : own) {
        const auto earlier = std::find_if(entries.begin(), entries.end(),
                                          [&key = entry.key](const ConfigEntry & e) { return e.key == key; });
        if (earlier != entries.end()) {
            entries.erase(earlier);
        }
        entries.push_back(std::move(entry));
    }
}

} // namespace

std::vector<ConfigEntry> read_config_file(const std::string & path) {
    std::vector<ConfigEntry> entries;
    read_entries(path, 0, entries);
    return entries;
}

} // namespace penelope
