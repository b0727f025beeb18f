#include "tools/argument_grammar.h"

#include "base/error.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"

#include <algorithm>

namespace penelope {

// White space is bounded: a model that is held to this grammar could write it without end.
const char * const loose_json_arguments = R"(
root   ::= object ws "}"
object ::= "{" ws (pair (ws "," ws pair)*)? ws "}"
pair   ::= string ws ":" ws value
array  ::= "[" ws (value (ws "," ws value)*)? ws "]"
value  ::= object | array | string | number | "true" | "false" | "null"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?
ws     ::= [ \t\r\n]{0,40}
)";

namespace {

Sequence operator+(Sequence a, const Sequence & b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct Property {
    std::string name;
    OrderedJson schema;
    bool        required;
};

// The properties of a tool in the order of its schema. References inside go to the definitions of the whole.
std::vector<Property> properties_of(const Tool & tool) {
    std::vector<Property> list;
    const OrderedJson     properties = tool.parameters.value("properties", OrderedJson::object());
    const OrderedJson     required   = tool.parameters.value("required", OrderedJson::array());
    for (const auto & [name, property] : properties.items()) {
        OrderedJson schema = property;
        for (const char * definitions : { "$defs", "definitions" }) {
            if (schema.is_object() && tool.parameters.contains(definitions)) {
                schema[definitions] = tool.parameters[definitions];
            }
        }
        list.push_back({ name, std::move(schema),
                         std::find(required.begin(), required.end(), OrderedJson(name)) != required.end() });
    }
    return list;
}

// Characters up to and including `end`, which begins with a character that it has only once.
Symbol text_until(GrammarBuilder & builder, std::string_view end) {
    std::vector<Symbol> states;
    for (size_t i = 0; i < end.size(); i++) {
        states.push_back(builder.rule());
    }
    const auto code = [](char c) { return uint32_t(static_cast<unsigned char>(c)); };
    for (size_t i = 0; i < end.size(); i++) {
        Sequence goes_on = builder.literal(end.substr(i, 1));
        if (i + 1 < end.size()) {
            goes_on.push_back(states[i + 1]);
        }
        builder.add(states[i], goes_on);
        CodeRanges others{ { code(end[0]), code(end[0]) }, { code(end[i]), code(end[i]) } };
        builder.add(states[i], { builder.character(complement(others)), states[0] });
        if (i > 0) {
            builder.add(states[i], builder.literal(end.substr(0, 1)) + Sequence{ states[1] });
        }
    }
    return states[0];
}

bool is_text(const OrderedJson & schema) {
    return schema.is_object() && schema.value("type", OrderedJson()) == "string";
}

// The strings of an enumeration; empty for none.
std::vector<std::string> choices(const OrderedJson & schema) {
    std::vector<std::string> list;
    if (schema.is_object() && schema.contains("enum") && schema["enum"].is_array()) {
        for (const OrderedJson & value : schema["enum"]) {
            if (value.is_string()) {
                list.push_back(value.get<std::string>());
            }
        }
    }
    return list;
}

Symbol json_value(GrammarBuilder & builder, const OrderedJson & schema) {
    return builder.embed(json_schema_grammar(schema));
}

} // namespace

Sequence json_arguments(GrammarBuilder & builder, const Tool & tool) {
    return Sequence{ json_value(builder, tool.parameters) } + builder.literal("}");
}

Sequence xml_arguments(GrammarBuilder & builder, const Tool & tool) {
    static constexpr const char * kEnd = "\n</parameter>";
    Sequence                      all  = builder.literal("\n");
    for (const Property & property : properties_of(tool)) {
        Sequence value;
        if (const std::vector<std::string> strings = choices(property.schema); !strings.empty()) {
            std::vector<Sequence> either;
            for (const std::string & string : strings) {
                either.push_back(builder.literal(string));
            }
            value = Sequence{ builder.any_of(either) } + builder.literal(kEnd);
        } else if (is_text(property.schema)) {
            value = { text_until(builder, kEnd) };
        } else {
            value = Sequence{ json_value(builder, property.schema) } + builder.literal(kEnd);
        }
        const Symbol whole =
            builder.any_of({ builder.literal("<parameter=" + property.name + ">\n") + value + builder.literal("\n") });
        all.push_back(property.required ? whole : builder.optional(whole));
    }
    return all + builder.literal("</function>");
}

Sequence gemma_arguments(GrammarBuilder & builder, const Tool & tool) {
    const Sequence quote = builder.literal("<|\"|>");
    JsonText       json(builder);
    // Any value in Gemma's form; rules refer to each other.
    const Symbol any = builder.rule(), string = builder.any_of({ quote + Sequence{ text_until(builder, "<|\"|>") } });
    CodeRanges   letters{ { 'A', 'Z' }, { 'a', 'z' }, { '0', '9' }, { '_', '_' } };
    const Symbol key     = builder.repeat(builder.character(letters), 1, 64);
    const Symbol pair    = builder.any_of({ Sequence{ key } + builder.literal(":") + Sequence{ any } });
    const auto   list_of = [&](const char * open, Symbol item, const char * close) {
        const Symbol more =
            builder.repeat(builder.any_of({ builder.literal(",") + Sequence{ item } }), 0, std::nullopt);
        return builder.any_of({ builder.literal(open) + Sequence{ item, more } + builder.literal(close),
                                builder.literal(std::string(open) + close) });
    };
    const Symbol object = list_of("{", pair, "}");
    for (const Symbol one : { string, json.number(), object, list_of("[", any, "]") }) {
        builder.add(any, { one });
    }
    for (const char * word : { "true", "false", "null" }) {
        builder.add(any, builder.literal(word));
    }
    const std::vector<Property> properties = properties_of(tool);
    if (properties.empty()) {
        return tool.parameters.value("additionalProperties", OrderedJson(true)) == false ? builder.literal("{}")
                                                                                         : Sequence{ object };
    }
    // Built from the last one, as objects of JSON Schema are.
    Symbol alone = builder.any_of({ builder.literal("}") }), after = alone;
    for (size_t i = properties.size(); i-- > 0;) {
        const OrderedJson &   schema = properties[i].schema;
        const OrderedJson     type   = schema.is_object() ? schema.value("type", OrderedJson()) : OrderedJson();
        std::vector<Sequence> values;
        for (const std::string & text : choices(schema)) {
            values.push_back(quote + builder.literal(text) + quote);
        }
        if (values.empty()) {
            const bool plain = type == "integer" || type == "number" || type == "boolean";
            values.push_back({ type == "string" ? string : plain ? json_value(builder, schema) : any });
        }
        const Sequence first = builder.literal(properties[i].name + ":") + Sequence{ builder.any_of(values), after };
        std::vector<Sequence> starts{ first }, goes_on{ builder.literal(",") + first };
        if (!properties[i].required) {
            starts.push_back({ alone });
            goes_on.push_back({ after });
        }
        alone = builder.any_of(starts);
        after = builder.any_of(goes_on);
    }
    return builder.literal("{") + Sequence{ alone };
}

} // namespace penelope
