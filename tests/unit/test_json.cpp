// JSON: limits, places of errors, typed fields.
#include <doctest/doctest.h>

#include "base/json.h"
#include "support/errors.h"
#include "support/temp_dir.h"

using penelope::Error;
using penelope::ErrorKind;
using penelope::Json;
using penelope::json_find;
using penelope::json_get;
using penelope::JsonLimits;
using penelope::parse_json;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::TempDir;

namespace {

std::string parse_message(const std::string & text, const JsonLimits & limits = {}) {
    const Error error = error_of([&] { parse_json(text, "here", limits); });
    CHECK(error.kind == ErrorKind::format);
    return error.message();
}

std::string repeat(const std::string & text, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) {
        out += text;
    }
    return out;
}

} // namespace

TEST_CASE("text and files are parsed") {
    const TempDir dir;
    CHECK(parse_json(R"({"a": [1, 2.5, "x", null, true]})", "here")["a"].size() == 5);
    CHECK(penelope::read_json_file(dir.write("a.json", "{\"k\": 1}\n"))["k"] == 1);
    CHECK(error_of([&] { penelope::read_json_file(dir.file("missing.json")); }).kind == ErrorKind::not_found);
}

TEST_CASE("an error says where and why") {
    CHECK(contains(parse_message("{\n  \"a\": 1,\n  \"b\": tru\n}"), "here: line 3, column "));
    CHECK(contains(parse_message("{\n  \"a\": 1,\n  \"b\": tru\n}"), "invalid literal"));
    CHECK_FALSE(contains(parse_message("[1,]"), "json.exception"));
    CHECK(contains(parse_message("[1,]"), "here: line 1, column 4: syntax error"));
    CHECK(contains(parse_message(""), "here: line 1, column 1: "));
    CHECK(contains(parse_message("[1] 2"), "here: line 1, column 5: "));
    CHECK(contains(parse_message("[1e999]"), "number overflow"));
    CHECK(contains(parse_message("\"\xFF\""), "invalid string"));
    const TempDir     dir;
    const std::string path = dir.write("bad.json", "{");
    CHECK(contains(error_of([&] { penelope::read_json_file(path); }).message(), "'" + path + "': line 1, column 2: "));
    CHECK_THROWS_AS(penelope::read_json_file(dir.write("empty.json", "")), Error);
}

TEST_CASE("nesting has a limit, brackets in strings do not count") {
    CHECK_NOTHROW(parse_json(repeat("[", 100) + repeat("]", 100), "here"));
    CHECK(contains(parse_message(repeat("[", 101) + repeat("]", 101)),
                   "line 1, column 101: JSON nested deeper than 100 levels"));
    CHECK(contains(parse_message(repeat("{\"a\":\n", 200)), "line 101, column 1: JSON nested deeper"));
    CHECK(contains(parse_message(repeat("[", 2000000)), "nested deeper"));
    CHECK_NOTHROW(parse_json("\"" + repeat("[{", 200) + "\\\"" + repeat("[", 200) + "\"", "here"));
    CHECK_NOTHROW(parse_json("[" + repeat("[],{},", 300) + "1]", "here"));
    CHECK_THROWS_AS(parse_json("[[1]]", "here", { 100, 1 }), Error);
}

TEST_CASE("size has a limit") {
    CHECK(contains(parse_message("[1, 2, 3]", { 8, 100 }), "here: 9 B of JSON, at most 8 B are read"));
    CHECK_NOTHROW(parse_json("[1, 2, 3]", "here", { 9, 100 }));
}

TEST_CASE("fields are read by type") {
    const Json object =
        parse_json(R"({"s": "x", "i": -3, "f": 2.5, "whole": 1e3, "b": true, "n": null, "o": {}, "a": [1],
                                       "big": 18446744073709551615, "huge": 1e300})",
                   "here");
    CHECK(json_get<std::string>(object, "s", "here") == "x");
    CHECK(json_get<int64_t>(object, "i", "here") == -3);
    CHECK(json_get<int64_t>(object, "whole", "here") == 1000);
    CHECK(json_get<double>(object, "f", "here") == 2.5);
    CHECK(json_get<double>(object, "i", "here") == -3.0);
    CHECK(json_get<bool>(object, "b", "here"));
    CHECK_FALSE(json_find<bool>(object, "none", "here"));
    CHECK_FALSE(json_find<std::string>(object, "n", "here"));
    CHECK(json_find<int64_t>(object, "i", "here") == -3);

    const auto message = [&](auto sample, const char * field) {
        return error_of([&] { json_get<decltype(sample)>(object, field, "here"); }).message();
    };
    CHECK(message(std::string(), "none") == "here: field 'none': missing, expected a string");
    CHECK(message(std::string(), "n") == "here: field 'n': missing, expected a string");
    CHECK(message(std::string(), "i") == "here: field 'i': expected a string, found '-3'");
    CHECK(message(int64_t(), "f") == "here: field 'f': expected an integer, found '2.5'");
    CHECK(message(int64_t(), "s") == "here: field 's': expected an integer, found '\"x\"'");
    CHECK(message(bool(), "o") == "here: field 'o': expected true or false, found an object");
    CHECK(message(double(), "a") == "here: field 'a': expected a number, found an array");
    CHECK(contains(message(int64_t(), "big"), "expected an integer"));
    CHECK(contains(message(int64_t(), "huge"), "expected an integer"));
    CHECK(message(double(), "b") == "here: field 'b': expected a number, found 'true'");
    CHECK(contains(error_of([&] { json_get<bool>(Json::array(), "b", "here"); }).message(),
                   "expected a JSON object, found array"));
    CHECK_THROWS_AS(json_find<bool>(object, "s", "here"), Error);
}

TEST_CASE("writing never fails on bytes that are no text") {
    CHECK(penelope::dump_json(Json{ { "k", "a\xFF"
                                           "b" } }) == "{\"k\":\"a\xEF\xBF\xBD"
                                                       "b\"}");
    penelope::OrderedJson ordered;
    ordered["z"] = 1;
    ordered["a"] = "\xC3";
    CHECK(penelope::dump_json(ordered) == "{\"z\":1,\"a\":\"\xEF\xBF\xBD\"}");
    CHECK(penelope::dump_json(Json{ { "k", 1 } }, 2) == "{\n  \"k\": 1\n}");
}

TEST_CASE("objects in the order of the text") {
    CHECK(penelope::dump_json(penelope::parse_ordered_json(R"({"z": 1, "a": {"y": 2, "b": 3}})", "here")) ==
          R"({"z":1,"a":{"y":2,"b":3}})");
    CHECK(error_of([] { penelope::parse_ordered_json("{\n\"a\" 1}", "here"); }).message().rfind("here: line 2", 0) ==
          0);

    JsonLimits few;
    few.max_keys     = 3;
    const auto parse = [&](const std::string & text) { return penelope::parse_ordered_json(text, "here", few); };
    CHECK(parse(R"({"a": [1, 2, 3, 4, 5], "b": ",,,,\",,", "c": {"x": 1, "y": 2, "z": 3}})").size() == 3);
    CHECK(error_of([&] { parse(R"([{"a": 1, "b": 2, "c": 3, "d": 4}])"); }).message() ==
          "here: line 1, column 25: a JSON object of more than 3 keys");
}

TEST_CASE("names of the outermost object can be held to come once") {
    JsonLimits once;
    once.unique_keys = true;
    CHECK(parse_json(R"({"a": {"b": 1}, "b": {"b": 2, "b": 3}})", "here", once).size() == 2);
    CHECK(parse_message(R"({"a": 1, "b": 2, "a": 3})", once) == "here: 'a' appears twice");
    CHECK(parse_json(R"({"a": 1, "a": 3})", "here")["a"] == 3);
}

TEST_CASE("text that may be no JSON") {
    CHECK(penelope::try_parse_json("[1]") == Json{ 1 });
    CHECK_FALSE(penelope::try_parse_json("[1"));
    CHECK_FALSE(penelope::try_parse_json(""));
    CHECK_FALSE(penelope::try_parse_json(repeat("[", 100000)));
}
