// JSON on nlohmann's library, with limits on what a file may ask for and with Errors that say where: file, line, column
// for text that is no JSON, file and field for a value of another type.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penelope {

using Json        = nlohmann::json;         // to read: objects are sorted maps
using OrderedJson = nlohmann::ordered_json; // to write: objects keep the order of insertion

struct JsonLimits {
    size_t max_bytes = size_t(256) << 20;
    int    max_depth = 100;  // objects and arrays inside each other
    size_t max_keys  = 4096; // of an OrderedJson's object, which looks through all of them for each
    bool   unique_keys =
        false; // whether a name that the outermost object has twice is an Error; else the last one counts
};

// `origin` names the text in messages: a path, "line 3 of data.jsonl", ...
Json parse_json(std::string_view text, const std::string & origin, const JsonLimits & limits = {});
// One line of a file of them: `origin` names the line, so messages give the column alone, after `separator`.
Json parse_json_line(std::string_view line, const std::string & origin, const std::string & hint = "",
                     const char * separator = ": ");
Json read_json_file(const std::string & path, const JsonLimits & limits = {});
// With objects in the order of the text.
OrderedJson parse_ordered_json(std::string_view text, const std::string & origin, const JsonLimits & limits = {});
// For text that may be none: nullopt where the others throw.
std::optional<Json> try_parse_json(std::string_view text);

// Never throws on text that is not UTF-8: such bytes become U+FFFD. indent < 0 gives one line.
std::string dump_json(const Json & value, int indent = -1);
std::string dump_json(const OrderedJson & value, int indent = -1);

// A field of an object. get: throws Error(format) when it is missing or of another type. find: nullopt when it is
// missing or null, throws on another type. T is std::string, int64_t (a number without fraction), double (any number)
// or bool.
template <typename T> T json_get(const Json & object, const std::string & field, const std::string & origin);
template <typename T>
std::optional<T> json_find(const Json & object, const std::string & field, const std::string & origin);

} // namespace penelope
