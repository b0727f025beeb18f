// Grammars: what an automaton takes of GBNF and JSON Schema, what is refused and in which words, and that every text it
// can be led to is JSON of the schema.
#include "base/error.h"
#include "base/rng.h"
#include "grammar/automaton.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/token_filter.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace penelope;

namespace {

Automaton gbnf(const std::string & text) {
    return Automaton(std::make_shared<const Grammar>(parse_gbnf(text)));
}

Automaton schema(const std::string & text) {
    return Automaton(std::make_shared<const Grammar>(json_schema_grammar(parse_ordered_json(text, "schema"))));
}

bool takes(Automaton & automaton, const std::string & text) {
    return automaton.accepts(automaton.next(automaton.start(), text));
}

bool begins(Automaton & automaton, const std::string & text) {
    return automaton.next(automaton.start(), text) != Automaton::dead;
}

// For each grammar: texts that are of it, and others that are not.
struct Texts {
    std::string              grammar;
    std::vector<std::string> in, out;
};

template <typename Make> void check_texts(const Make & make, const std::vector<Texts> & all) {
    for (const Texts & texts : all) {
        Automaton automaton = make(texts.grammar);
        for (const std::string & text : texts.in) {
            CHECK_MESSAGE(takes(automaton, text), texts.grammar << " should take " << text);
        }
        for (const std::string & text : texts.out) {
            CHECK_MESSAGE(!takes(automaton, text), texts.grammar << " should not take " << text);
        }
    }
}

template <typename Make> std::string message_of(const Make & make, const std::string & text) {
    try {
        make(text);
    } catch (const Error & error) {
        return error.message();
    }
    return "";
}

// A random text of the automaton: any byte that is allowed, ending with some probability where it may and always when
// it must.
std::string random_text(Automaton & automaton, Rng & rng) {
    std::string text;
    for (int state = automaton.start();;) {
        const bool may_end = automaton.accepts(state);
        if (may_end && (!automaton.can_continue(state) || rng.uniform() < 0.2)) {
            return text;
        }
        std::vector<int> bytes;
        for (int byte = 0; byte < 256; byte++) {
            if (automaton.next(state, static_cast<unsigned char>(byte)) != Automaton::dead) {
                bytes.push_back(byte);
                // What closes something is likelier, or nested values would hardly ever end.
                for (const char c : std::string("\"]}")) {
                    bytes.insert(bytes.end(), byte == c ? 60 : 0, byte);
                }
            }
        }
        REQUIRE(!bytes.empty());
        const int byte = bytes[size_t(rng.uniform() * double(bytes.size()))];
        text += char(byte);
        state = automaton.next(state, static_cast<unsigned char>(byte));
        REQUIRE(text.size() < 100000);
    }
}

} // namespace

TEST_CASE("GBNF") {
    check_texts(gbnf, {
                          { "root ::= \"yes\" | \"no\"", { "yes", "no" }, { "", "ye", "yesno", "maybe" } },
                          { "root ::= [a-c]+ \"!\"?", { "a", "abc!", "c" }, { "", "d", "a!!" } },
                          { "root ::= \"ab\"{2,3}", { "abab", "ababab" }, { "ab", "abb", "abababab" } },
                          { "root ::= \"a\"{2}", { "aa" }, { "a", "aaa" } },
                          { "root ::= [0-9]{2,}", { "12", "123456" }, { "1", "" } },
                          { "root ::= [^a-y\\n]", { "z", "é", "中", "😀" }, { "a", "y", "\n", "zz" } },
                          { "root ::= .", { "x", "\n", "é" }, { "", "xy", "\xC3", "\xED\xA0\x80" } },
                          { "root ::= [\\x41-\\x43] [\\u00e9-\\u00ff] [\\U0001f600]", { "Aé😀" }, { "Dé😀", "Aè😀" } },
                          { "root ::= \"\\\"\\\\\\n\"", { "\"\\\n" }, { "" } },
                          { "# numbers in brackets\nroot ::= list # here\nlist ::= \"[\" (item (\",\" item)*)? "
                            "\"]\"\n\nitem ::= [0-9] | list\n",
                            { "[]", "[1]", "[1,[2,[]],3]" },
                            { "[", "[1,]", "[1]]" } },
                          { "root ::= (\n  \"a\" |\n  \"b\"\n)\n  | \"c\"\n", { "a", "b", "c" }, { "ab" } },
                          { "root ::= ( \"a\"? \"b\"? )*", { "", "a", "b", "bbaab" }, { "c" } },
                          { "root ::= [a-z-] [\\]x]", { "-]", "qx" }, { "1x" } },
                      });
}

TEST_CASE("GBNF that is wrong says where") {
    CHECK(message_of(gbnf, "root ::= \"a") == "grammar, line 1, column 12: unexpected end");
    CHECK(message_of(gbnf, "root ::= a\nb ::= \"x\"") == "grammar: undefined rule 'a'");
    CHECK(message_of(gbnf, "a ::= \"x\"") == "grammar: missing rule root");
    CHECK(message_of(gbnf, "root ::= \"a\"\nroot ::= \"b\"") == "grammar, line 2, column 5: duplicate rule 'root'");
    CHECK(message_of(gbnf, "root = \"a\"") == "grammar, line 1, column 6: expected ::= after the rule name");
    CHECK(message_of(gbnf, "root ::= (\"a\"") == "grammar, line 1, column 14: expected )");
    CHECK(message_of(gbnf, "root ::= \"a\")") == "grammar, line 1, column 13: expected the end of the line");
    CHECK(message_of(gbnf, "root ::= [b-a]") ==
          "grammar, line 1, column 14: invalid range: its end is before its start");
    CHECK(message_of(gbnf, "root ::= \"a\"{3,2}").find("maximum below minimum") != std::string::npos);
    CHECK(message_of(gbnf, "root ::= root \"a\" | \"b\"") == "grammar: left recursion is not supported");
    CHECK(message_of(gbnf, "root ::= b \"a\"\nb ::= \"x\"? root | \"y\"") ==
          "grammar: left recursion is not supported");
    CHECK(message_of(gbnf, "root ::= \"a\" root") == "grammar: a rule never terminates");
    CHECK(message_of(gbnf, "root ::= (\"a\"{10000}){10000}") == ""); // the inner one is there once
    CHECK(message_of(gbnf, "root ::= \"a\"{10000} \"b\"{10000} \"c\"{10000} \"d\"{10000} \"e\"{10000} \"f\"{10000}") ==
          "grammar: too large, more than 200000 symbols");
    CHECK(message_of(gbnf, "root ::= \"a\"{10001}").find("repeat count above") != std::string::npos);
    CHECK(message_of(gbnf, std::string(1000, '(')).find("expected a rule name") != std::string::npos);
    CHECK(message_of(gbnf, "root ::= " + std::string(1000, '(')).find("nested too deep") != std::string::npos);
    CHECK(message_of(gbnf, "") == "grammar: missing rule root");
}

TEST_CASE("JSON Schema") {
    check_texts(
        schema,
        {
            { "{}",
              { "1", "\"a\"", "null", "[1,[2, {\"a\": true}]]", "{}", "-1.5e-3" },
              { "", "01", "{a:1}", "[1,]", "\"\\x\"", "\"\n\"" } },
            { "{\"type\":\"string\"}", { "\"\"", "\"é\\n\\u00e9 😀\"" }, { "\"", "\"\\ud800\"", "\"\x01\"", "a" } },
            { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
              { "\"ab\"", "\"é中\\n\"" },
              { "\"a\"", "\"abcd\"" } },
            { "{\"type\":\"string\",\"pattern\":\"^[A-Z]{2}\\\\d+(x|y)?$\"}",
              { "\"AB1\"", "\"ZZ123y\"" },
              { "\"A1\"", "\"AB1z\"", "\"xAB1\"" } },
            { "{\"type\":\"string\",\"pattern\":\"b.d\"}", { "\"bad\"", "\"a bed!\"" }, { "\"bd\"", "\"b\\nd\"" } },
            { "{\"type\":\"string\",\"pattern\":\"^\\\"$\"}", { "\"\\\"\"" }, { "\"\"\"" } },
            { "{\"type\":\"string\",\"format\":\"date\"}", { "\"2024-02-28\"" }, { "\"2024-13-01\"", "\"2024-1-1\"" } },
            { "{\"type\":\"boolean\"}", { "true", "false" }, { "null", "1" } },
            { "{\"type\":[\"integer\",\"null\"]}", { "0", "-7", "null" }, { "-0", "1.5", "007" } },
            { "{\"type\":\"integer\",\"minimum\":-12,\"maximum\":105}",
              { "-12", "-1", "0", "9", "10", "99", "100", "105" },
              { "-13", "106", "00", "-0", "1000" } },
            { "{\"type\":\"integer\",\"exclusiveMinimum\":17}", { "18", "99", "100", "4000" }, { "17", "9", "-20" } },
            { "{\"type\":\"integer\",\"exclusiveMaximum\":-8}", { "-9", "-10", "-4000" }, { "-8", "0", "9" } },
            { "{\"type\":\"number\",\"minimum\":0}", { "0", "1.25", "3e8" }, { "-1" } },
            { "{\"enum\":[\"red\",5,null,{\"a\":[1]}]}",
              { "\"red\"", "5", "null", "{\"a\":[1]}" },
              { "\"blue\"", "50" } },
            { "{\"const\":\"\\\"q\\\"\"}", { "\"\\\"q\\\"\"" }, { "\"q\"" } },
            { "{\"type\":\"string\",\"enum\":[\"a\",1]}", { "\"a\"" }, { "1" } },
            { "{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"},\"c\":{\"type\":\"null\"}},"
              "\"required\":[\"b\"]}",
              { "{\"b\":true}", "{\"a\":1,\"b\": false}", "{\"a\": 1, \"b\": true, \"c\": null}",
                "{\"b\":true,\"c\":null}" },
              { "{}", "{\"a\":1}", "{\"b\":true,\"a\":1}", "{,\"b\":true}", "{\"b\":true,}", "{\"b\":true,\"d\":1}" } },
            { "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
              { "{}", "{\"x\":1, \"y\":2}" },
              { "{\"x\":\"1\"}" } },
            { "{\"type\":\"object\",\"additionalProperties\":false}", { "{}" }, { "{\"a\":1}" } },
            { "{\"type\":\"object\",\"required\":[\"k\"]}", { "{\"k\":[1]}" }, { "{}" } },
            { "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
              { "[1]", "[1, 2,3]" },
              { "[]", "[1,2,3,4]", "[null]" } },
            { "{\"type\":\"array\",\"maxItems\":0}", { "[]" }, { "[1]" } },
            { "{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":false}",
              { "[1,\"a\"]" },
              { "[1]", "[1,\"a\",2]" } },
            { "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}", { "1", "\"1\"" }, { "true" } },
            { "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"a\"},\"n\":{\"type\":\"integer\"}"
              "},\"required\":[\"kind\",\"n\"]},"
              "{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"b\"}},\"required\":[\"kind\"]}]}",
              { "{\"kind\":\"a\",\"n\":1}", "{\"kind\":\"b\"}" },
              { "{\"kind\":\"a\"}", "{\"kind\":\"c\"}" } },
            { "{\"$ref\":\"#/$defs/"
              "node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{"
              "\"anyOf\":["
              "{\"$ref\":\"#/$defs/node\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}}}",
              { "{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}" },
              { "{\"v\":1,\"next\":{\"v\":2}}" } },
        });
}

TEST_CASE("unsupported schema keywords are errors that name the keyword") {
    CHECK(message_of(schema, "{\"type\":\"number\",\"multipleOf\":2}") == "schema #: 'multipleOf' is not supported");
    CHECK(message_of(schema, "{\"properties\":{\"a\":{\"not\":{}}}}") ==
          "schema #/properties/a: 'not' is not supported");
    CHECK(message_of(schema, "{\"type\":\"number\",\"maximum\":2}").find("maximum is not supported for type number") !=
          std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"text\"}").find("unknown type") != std::string::npos);
    CHECK(message_of(schema, "{\"$ref\":\"other.json\"}").find("outside the schema") != std::string::npos);
    CHECK(message_of(schema, "{\"$ref\":\"#/$defs/x\"}").find("not found: '#/$defs/x'") != std::string::npos);
    CHECK(message_of(schema, "{\"$ref\":\"#\"}").find("never terminates") != std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"object\",\"properties\":{\"x\":{\"$ref\":\"#\"}},\"required\":[\"x\"]}")
              .find("never terminates") != std::string::npos);
    CHECK(message_of(schema, "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}").find("branches overlap") !=
          std::string::npos);
    CHECK(message_of(schema, "{\"allOf\":[{},{}]}").find("allOf with several") != std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"string\",\"format\":\"email\"}").find("format 'email'") != std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"string\",\"pattern\":\"(?=a)b\"}").find("(? is not supported") !=
          std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"string\",\"pattern\":\"a)\"}").find("unmatched )") != std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}").find("no integer") !=
          std::string::npos);
    CHECK(message_of(schema, "{\"enum\":[1],\"minimum\":1}").find("enum together with minimum") != std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}")
              .find("is not allowed") != std::string::npos);
    CHECK(message_of(schema, "false").find("schema allows no value") != std::string::npos);
    CHECK(message_of(schema, "3").find("expected an object") != std::string::npos);
    CHECK(message_of(schema, "{\"type\":\"array\",\"uniqueItems\":true}").find("uniqueItems") != std::string::npos);
}

TEST_CASE("every text a schema leads to is its JSON") {
    Automaton person = schema("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,"
                              "\"maxLength\":20},\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":150},"
                              "\"tags\":{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\"]},\"maxItems\":4},"
                              "\"more\":{}},\"required\":[\"name\",\"age\"]}");
    Rng       rng(7, 0);
    for (int i = 0; i < 300; i++) {
        const std::string text  = random_text(person, rng);
        const Json        value = parse_json(text, "answer");
        REQUIRE_MESSAGE(value.is_object(), text);
        CHECK(value["name"].is_string());
        CHECK(!value["name"].get<std::string>().empty());
        CHECK(value["age"].is_number_integer());
        CHECK(value["age"].get<int>() >= 0);
        CHECK(value["age"].get<int>() <= 150);
        if (value.contains("tags")) {
            CHECK(value["tags"].size() <= 4);
            for (const Json & tag : value["tags"]) {
                CHECK((tag == "a" || tag == "b"));
            }
        }
        for (const auto & [key, unused] : value.items()) {
            CHECK((key == "name" || key == "age" || key == "tags" || key == "more"));
        }
    }
}

TEST_CASE("integers between any two bounds are exactly those") {
    Rng rng(11, 0);
    for (int round = 0; round < 60; round++) {
        const int a = int(rng.uniform() * 2400) - 1200, b = a + int(rng.uniform() * 1500);
        Automaton automaton = schema("{\"type\":\"integer\",\"minimum\":" + std::to_string(a) +
                                     ",\"maximum\":" + std::to_string(b) + "}");
        for (int n = a - 30; n <= b + 30; n++) {
            REQUIRE_MESSAGE(takes(automaton, std::to_string(n)) == (n >= a && n <= b), n << " in " << a << ".." << b);
        }
    }
}

TEST_CASE("tokens are matched byte by byte") {
    const Tokenizer tokenizer(byte_level_vocabulary()); // token b is byte b, 257 ends
    TokenFilter     filter(std::make_shared<const Grammar>(parse_gbnf("root ::= \"é\" \"!\"?")), tokenizer);
    const auto      allowed = [&] {
        std::vector<int32_t>     out;
        const std::vector<float> logits(260, 1.0f);
        const float *            masked = filter.masked(logits.data(), 260);
        for (int32_t i = 0; i < 260; i++) {
            if (masked[i] > -INFINITY) {
                CHECK(masked[i] == 1.0f);
                CHECK(filter.allows(i));
                out.push_back(i);
            } else {
                CHECK(!filter.allows(i));
            }
        }
        return out;
    };
    CHECK(allowed() == std::vector<int32_t>{ 0xC3 });
    filter.accept(0xC3);
    CHECK(allowed() == std::vector<int32_t>{ 0xA9 });
    CHECK(!filter.complete());
    filter.accept(0xA9);
    CHECK(allowed() == std::vector<int32_t>{ '!', 257 });
    CHECK(!filter.complete());
    filter.accept('!');
    CHECK(allowed() == std::vector<int32_t>{ 257 });
    CHECK(filter.complete());
}

// Tries every byte after each beginning of the text, as the tokens of a vocabulary do.
void try_all_bytes(Automaton & automaton, const std::string & text) {
    int state = automaton.start();
    for (size_t i = 0; i <= text.size(); i++) {
        for (int byte = 0; byte < 256; byte++) {
            automaton.next(automaton.next(state, static_cast<unsigned char>(byte)), 'e');
        }
        state = i < text.size() ? automaton.next(state, static_cast<unsigned char>(text[i])) : state;
    }
}

TEST_CASE("a small grammar cannot take much time or room") {
    std::string ways = "root ::= b", marks;
    for (int i = 0; i < 300; i++) {
        ways += " | a \"~\"";
    }
    for (char c = 'a'; c <= 'v'; c++) {
        marks += std::string(marks.empty() ? "" : " | ") + "\"" + c + "\" [a-z]{60}";
    }
    Automaton automaton = gbnf("a ::= [a-z]*\nb ::= [a-z]* ( " + marks + " ) \"~\"\n" + ways);
    Rng       rng(1);
    CHECK_THROWS_WITH_AS(
        for (int n = 0; n < 100000; n++) {
            std::string text;
            for (int i = 0; i < 60; i++) {
                text += char('a' + rng.below(26));
            }
            automaton.next(automaton.start(), text);
        },
        "grammar: too ambiguous", Error);
    CHECK(automaton.used() > 0.99);
}

TEST_CASE("what people ask for takes little of it") {
    std::string words, properties;
    for (int i = 0; i < 1000; i++) {
        words += (i ? ",\"value " : "\"value ") + std::to_string(i * 7919 % 100003) + "\"";
        properties +=
            (i ? ",\"p" : "\"p") + std::to_string(i) + "\":{\"type\":\"" + (i % 2 ? "integer" : "string") + "\"}";
    }
    Automaton json = schema("{}"), one_of = schema("{\"enum\":[" + words + "]}"),
              wide     = schema("{\"type\":\"object\",\"properties\":{" + properties + "}}"),
              counted  = gbnf("root ::= line{1,500}\nline ::= [a-z ]{1,80} \"\\n\""),
              sum      = gbnf("root ::= term ( [-+*/] term )*\nterm ::= [0-9]+ | \"(\" root \")\" | [a-z]+");
    std::string nested = "0", lines;
    for (int i = 0; i < 100; i++) {
        nested = "{\"a\": [" + nested + ", \"text with \\u00e9\", -1.5e3]}";
        lines += "some words of a line\n";
    }
    try_all_bytes(json, nested);
    try_all_bytes(one_of, "\"value 7919\"");
    try_all_bytes(wide, "{\"p0\": \"a\", \"p1\": 17, \"p400\": \"b\"}");
    try_all_bytes(counted, lines);
    try_all_bytes(sum, "(a+(b*17-(c/2)))*((((((x))))))");
    for (const Automaton * automaton : { &json, &one_of, &wide, &counted, &sum }) {
        CHECK(automaton->used() < 0.1);
    }
}

TEST_CASE("a grammar that reads one text in too many ways is refused, others stay small") {
    Automaton many = gbnf("root ::= ( \"a\"* \"a\"* \"a\"* )*");
    CHECK(begins(many, std::string(5000, 'a')));
    Automaton deep = schema("{}");
    CHECK(begins(deep, std::string(5000, '[')));
    CHECK(takes(deep, std::string(3000, '[') + std::string(3000, ']')));
    CHECK(!takes(deep, std::string(3000, '[') + std::string(3001, ']')));
}
