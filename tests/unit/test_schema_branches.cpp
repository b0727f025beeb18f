// Whether branches of a oneOf exclude each other, in schemas of any shape and in little time.
#include <doctest/doctest.h>

#include "base/json.h"
#include "grammar/json_schema.h"
#include "grammar/schema_branches.h"
#include "support/errors.h"

#include <ctime>

using namespace penelope;
using test::contains;
using test::error_of;

namespace {

bool disjoint(const std::string & text) {
    const OrderedJson root    = parse_ordered_json(text, "schema");
    const auto        resolve = [&](const std::string & pointer) -> const OrderedJson & {
        return root.at(OrderedJson::json_pointer(pointer.substr(1)));
    };
    const std::clock_t begin  = std::clock();
    const bool         result = branches_are_disjoint(root.at("oneOf"), resolve);
    CHECK(double(std::clock() - begin) / CLOCKS_PER_SEC < 5);
    return result;
}

// Two objects that hold each other through so many properties, all of them required.
std::string holding_themselves(int n_properties) {
    const auto object = [&](const std::string & name) {
        std::string properties, required;
        for (int i = 0; i < n_properties; i++) {
            const std::string p = "\"p" + std::to_string(i) + "\"";
            properties += (i > 0 ? "," : "") + p + ":{\"$ref\":\"#/$defs/" + name + "\"}";
            required += (i > 0 ? "," : "") + p;
        }
        return "{\"type\":\"object\",\"properties\":{" + properties + "},\"required\":[" + required + "]}";
    };
    return "{\"oneOf\":[{\"$ref\":\"#/$defs/A\"},{\"$ref\":\"#/$defs/B\"}],\"$defs\":{\"A\":" + object("A") +
           ",\"B\":" + object("B") + "}}";
}

} // namespace

TEST_CASE("types, constants and properties tell branches apart") {
    CHECK(disjoint(R"({"oneOf":[{"type":"string"},{"type":["integer","null"]}]})"));
    CHECK_FALSE(disjoint(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"));
    CHECK(disjoint(R"({"oneOf":[{"const":1},{"const":null},{"enum":[2,"1"]}]})"));
    CHECK_FALSE(disjoint(R"({"oneOf":[{"const":null},{"enum":[null]}]})"));
    CHECK(disjoint(R"({"oneOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k"]},)"
                   R"({"type":"object","properties":{"k":{"$ref":"#/two"}},"required":["k"]}],"two":{"const":2}})"));
    CHECK_FALSE(disjoint(R"({"oneOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k"]},)"
                         R"({"type":"object","properties":{"k":{"const":2}}}]})"));
}

TEST_CASE("as many constants as people write") {
    std::string list;
    for (int i = 0; i < 500; i++) {
        list += (i > 0 ? ",{\"const\":" : "{\"const\":") + std::to_string(i) + "}";
    }
    CHECK(disjoint("{\"oneOf\":[" + list + "]}"));
    CHECK_FALSE(disjoint("{\"oneOf\":[" + list + ",{\"const\":7}]}"));
}

TEST_CASE("schemas that hold themselves are given up on") {
    for (const int n : { 1, 3, 8, 200 }) {
        CAPTURE(n);
        CHECK_FALSE(disjoint(holding_themselves(n)));
    }
    std::string numbers = "0";
    for (int i = 1; i < 4000; i++) {
        numbers += "," + std::to_string(i);
    }
    CHECK_FALSE(disjoint("{\"oneOf\":[{\"enum\":[" + numbers + "]},{\"enum\":[-1," + numbers + "]}]}"));
}

TEST_CASE("schemas of a size nobody writes are refused") {
    const OrderedJson schema = { { "type", "string" }, { "description", std::string(70000, 'x') } };
    CHECK(contains(error_of([&] { json_schema_grammar(schema); }).message(), "schema is larger than 64 KiB"));
}
