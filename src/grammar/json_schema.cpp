#include "grammar/json_schema.h"

#include "base/error.h"
#include "base/format.h"
#include "grammar/json_text.h"
#include "grammar/schema_branches.h"
#include "grammar/schema_keywords.h"
#include "grammar/string_pattern.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

constexpr int    kMaxNesting     = 100;
constexpr size_t kMaxSchemaBytes = 65536;

// Regular expressions for `format`. Days stop at 28, which every month has.
constexpr std::pair<const char *, const char *> kFormats[] = {
    { "date", "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])$" },
    { "time", "^([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$" },
    { "date-time", "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-"
                   "]([01]\\d|2[0-3]):[0-5]\\d)$" },
    { "uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$" },
};

Sequence operator+(Sequence a, const Sequence & b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

class Schema {
  public:
    explicit Schema(const OrderedJson & root) : root_(root) {}

    Grammar compile() { return builder_.finish(referred("#")); }

  private:
    Symbol referred(const std::string & pointer);
    Symbol schema(const OrderedJson & s, const std::string & where);
    Symbol of_type(const OrderedJson & s, const std::string & type, const std::string & where);
    Symbol object(const OrderedJson & s, const std::string & where);
    Symbol array(const OrderedJson & s, const std::string & where);
    Symbol string(const OrderedJson & s, const std::string & where);
    Symbol integer(const OrderedJson & s, const std::string & where);
    Symbol number(const OrderedJson & s, const std::string & where);
    Symbol branches(const OrderedJson & list, const std::string & where);
    Symbol values(const OrderedJson & s, const std::string & where);

    std::optional<size_t>  size_in(const OrderedJson & s, const char * name, const std::string & where) const;
    std::optional<int64_t> bound_in(const OrderedJson & s, const char * name, const std::string & where) const;

    const OrderedJson &           root_;
    GrammarBuilder                builder_;
    JsonText                      json_{ builder_ };
    std::map<std::string, Symbol> refs_; // by JSON pointer; references may be recursive
    int                           depth_ = 0;
};

Symbol Schema::referred(const std::string & pointer) {
    const auto found = refs_.find(pointer);
    if (found != refs_.end()) {
        return found->second;
    }
    if (pointer.empty() || pointer[0] != '#') {
        reject_schema("$ref", in_quotes(pointer) + " is outside the schema", "move it into $defs");
    }
    const OrderedJson * target = nullptr;
    try {
        target = &root_.at(OrderedJson::json_pointer(pointer.substr(1)));
    } catch (const std::exception &) {
        reject_schema("$ref", "not found: " + in_quotes(pointer));
    }
    const Symbol rule = refs_[pointer] = builder_.rule();
    builder_.add(rule, { schema(*target, pointer) });
    return rule;
}

Symbol Schema::schema(const OrderedJson & s, const std::string & where) {
    if (s.is_boolean() && s.get<bool>()) {
        return json_.value();
    }
    if (!s.is_object()) {
        reject_schema(where, s.is_boolean() ? "schema allows no value" : "expected an object");
    }
    if (++depth_ > kMaxNesting) {
        reject_schema(where, "schema nested too deep");
    }
    check_schema_keywords(s, where);
    // These keywords cannot be combined with others, since both would have to hold.
    Symbol     out   = 0;
    const auto alone = [&](const std::string & name, const std::string & allowed = "") {
        for (const SchemaKeyword & keyword : schema_keywords()) {
            if (keyword.name != name && keyword.name != allowed && s.contains(keyword.name)) {
                reject_schema(where, name + " together with " + keyword.name + " is not supported");
            }
        }
    };
    if (s.contains("$ref")) {
        alone("$ref");
        if (!s["$ref"].is_string()) {
            reject_schema(where, "$ref: expected a string");
        }
        out = referred(s["$ref"].get<std::string>());
    } else if (s.contains("enum") || s.contains("const")) {
        alone(s.contains("enum") ? "enum" : "const", "type");
        out = values(s, where);
    } else if (s.contains("anyOf") || s.contains("oneOf")) {
        const char * name = s.contains("anyOf") ? "anyOf" : "oneOf";
        alone(name);
        out = branches(s[name], where + "/" + name);
        if (std::string(name) == "oneOf") {
            const auto resolve = [&](const std::string & pointer) -> const OrderedJson & {
                return root_.at(OrderedJson::json_pointer(pointer.substr(1)));
            };
            if (!branches_are_disjoint(s[name], resolve)) {
                reject_schema(where, "oneOf branches overlap",
                              "use anyOf, or give the branches different types or constants");
            }
        }
    } else if (s.contains("allOf")) {
        alone("allOf");
        if (!s["allOf"].is_array() || s["allOf"].size() != 1) {
            reject_schema(where, "allOf with several schemas is not supported", "merge them into one schema");
        }
        out = schema(s["allOf"][0], where + "/allOf/0");
    } else {
        const std::vector<std::string> types = schema_types(s, where);
        std::vector<Sequence>          all;
        for (const std::string & type : types) {
            all.push_back({ of_type(s, type, where) });
        }
        out = types.empty() ? json_.value() : builder_.any_of(all);
    }
    depth_--;
    return out;
}

Symbol Schema::branches(const OrderedJson & list, const std::string & where) {
    if (!list.is_array() || list.empty()) {
        reject_schema(where, "expected a list of schemas");
    }
    std::vector<Sequence> all;
    for (const OrderedJson & one : list) {
        all.push_back({ schema(one, where + "/" + std::to_string(all.size())) });
    }
    return builder_.any_of(all);
}

Symbol Schema::values(const OrderedJson & s, const std::string & where) {
    const OrderedJson list = s.contains("const") ? OrderedJson::array({ s["const"] }) : s["enum"];
    if (!list.is_array()) {
        reject_schema(where, "enum: expected a list");
    }
    const std::vector<std::string> types = schema_types(s, where);
    std::vector<Sequence>          all;
    for (const OrderedJson & value : list) {
        if (types.empty() ||
            std::any_of(types.begin(), types.end(), [&](const auto & t) { return has_type(value, t); })) {
            all.push_back(json_.literal(value));
        }
    }
    if (all.empty()) {
        reject_schema(where, "schema allows no value");
    }
    return builder_.any_of(all);
}

Symbol Schema::of_type(const OrderedJson & s, const std::string & type, const std::string & where) {
    if (type == "object") {
        return object(s, where);
    }
    if (type == "array") {
        return array(s, where);
    }
    if (type == "string") {
        return string(s, where);
    }
    if (type == "integer") {
        return integer(s, where);
    }
    if (type == "number") {
        return number(s, where);
    }
    return type == "null" ? builder_.any_of({ builder_.literal("null") })
                          : builder_.any_of({ builder_.literal("true"), builder_.literal("false") });
}

std::optional<size_t> Schema::size_in(const OrderedJson & s, const char * name, const std::string & where) const {
    if (!s.contains(name)) {
        return std::nullopt;
    }
    if (!s[name].is_number_unsigned()) {
        reject_schema(where, std::string(name) + ": expected an integer >= 0");
    }
    return s[name].get<size_t>();
}

std::optional<int64_t> Schema::bound_in(const OrderedJson & s, const char * name, const std::string & where) const {
    if (!s.contains(name)) {
        return std::nullopt;
    }
    const double value = s[name].is_number() ? s[name].get<double>() : NAN;
    if (!(std::fabs(value) < 9e15) || value != std::floor(value)) {
        reject_schema(where, std::string(name) + ": expected an integer");
    }
    return int64_t(value);
}

Symbol Schema::integer(const OrderedJson & s, const std::string & where) {
    std::optional<int64_t> least = bound_in(s, "minimum", where), most = bound_in(s, "maximum", where);
    if (const auto above = bound_in(s, "exclusiveMinimum", where)) {
        least = std::max(least.value_or(*above + 1), *above + 1);
    }
    if (const auto below = bound_in(s, "exclusiveMaximum", where)) {
        most = std::min(most.value_or(*below - 1), *below - 1);
    }
    if (least && most && *least > *most) {
        reject_schema(where, "no integer between minimum and maximum");
    }
    return json_.integer(least, most);
}

Symbol Schema::number(const OrderedJson & s, const std::string & where) {
    const bool from_0 = s.contains("minimum") && s["minimum"] == 0;
    for (const char * name : { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum" }) {
        if (s.contains(name) && !(from_0 && std::string(name) == "minimum")) {
            reject_schema(where, std::string(name) + " is not supported for type number",
                          "supported are type integer, and minimum 0");
        }
    }
    return from_0 ? json_.number_from_0() : json_.number();
}

Symbol Schema::string(const OrderedJson & s, const std::string & where) {
    const bool sized = s.contains("minLength") || s.contains("maxLength");
    if (sized + s.contains("pattern") + s.contains("format") > 1) {
        reject_schema(where, "only one of minLength/maxLength, pattern and format is supported");
    }
    const auto text_in = [&](const char * name) {
        if (!s[name].is_string()) {
            reject_schema(where, std::string(name) + ": expected a string");
        }
        return s[name].get<std::string>();
    };
    if (s.contains("pattern")) {
        return pattern_string(builder_, json_, text_in("pattern"), "schema " + where + ": pattern");
    }
    if (s.contains("format")) {
        for (const auto & [name, pattern] : kFormats) {
            if (text_in("format") == name) {
                return pattern_string(builder_, json_, pattern, "");
            }
        }
        reject_schema(where, "format " + in_quotes(text_in("format")) + " is not supported",
                      "supported are date, time, date-time and uuid");
    }
    const size_t                least = size_in(s, "minLength", where).value_or(0);
    const std::optional<size_t> most  = size_in(s, "maxLength", where);
    if (most && *most < least) {
        reject_schema(where, "minLength is above maxLength");
    }
    return sized ? json_.string_of(json_.character(), least, most) : json_.string();
}

Symbol Schema::array(const OrderedJson & s, const std::string & where) {
    const size_t                least = size_in(s, "minItems", where).value_or(0);
    const std::optional<size_t> most  = size_in(s, "maxItems", where);
    if (most && *most < least) {
        reject_schema(where, "minItems is above maxItems");
    }
    const bool   only_prefix = s.contains("items") && s["items"] == false;
    const Symbol item = s.contains("items") && !only_prefix ? schema(s["items"], where + "/items") : json_.value();
    if (!s.contains("prefixItems")) {
        return only_prefix ? builder_.any_of({ builder_.literal("[]") }) : json_.list_of(item, least, most);
    }
    const OrderedJson & prefix = s["prefixItems"];
    if (!prefix.is_array() || prefix.empty()) {
        reject_schema(where, "prefixItems: expected a list of schemas");
    }
    const size_t n = prefix.size();
    if ((most && *most < n) || (only_prefix && least > n)) {
        reject_schema(where, "prefixItems: its length is outside minItems to maxItems");
    }
    Sequence list = builder_.literal("[");
    for (size_t i = 0; i < n; i++) {
        list = i > 0 ? list + Sequence{ json_.comma() } : list;
        list.push_back(schema(prefix[i], where + "/prefixItems/" + std::to_string(i)));
    }
    if (!only_prefix) {
        list.push_back(builder_.repeat(builder_.any_of({ { json_.comma(), item } }), least > n ? least - n : 0,
                                       most ? std::optional(*most - n) : std::nullopt));
    }
    return builder_.any_of({ list + builder_.literal("]") });
}

Symbol Schema::object(const OrderedJson & s, const std::string & where) {
    const OrderedJson none = OrderedJson::object(), properties = s.value("properties", none);
    const OrderedJson others   = s.value("additionalProperties", OrderedJson(true)),
                      required = s.value("required", OrderedJson::array());
    if (!properties.is_object() || !required.is_array()) {
        reject_schema(where, "properties must be an object and required a list of names");
    }
    struct Member {
        Sequence text;
        bool     required;
    };
    std::vector<Member>      members;
    std::vector<std::string> needed;
    for (const OrderedJson & name : required) {
        if (!name.is_string()) {
            reject_schema(where, "required: expected a list of names");
        }
        needed.push_back(name.get<std::string>());
    }
    for (const auto & [name, value] : properties.items()) {
        const auto place = std::find(needed.begin(), needed.end(), name);
        members.push_back(
            { json_.key(name) + Sequence{ schema(value, where + "/properties/" + name) }, place != needed.end() });
        needed.erase(std::remove(needed.begin(), needed.end(), name), needed.end());
    }
    const auto other = [&] { return schema(others, where + "/additionalProperties"); };
    for (const std::string & name : needed) {
        if (others == false) {
            reject_schema(where, "required property " + in_quotes(name) + " is not allowed by additionalProperties");
        }
        members.push_back({ json_.key(name) + Sequence{ other() }, true });
    }
    if (members.empty()) {
        return others == false ? builder_.any_of({ builder_.literal("{}") }) : json_.map_of(other());
    }
    // Built from the last member: what may follow, depending on whether a member precedes (comma).
    Symbol alone = builder_.any_of({ builder_.literal("}") }), after = alone;
    for (size_t i = members.size(); i-- > 0;) {
        const Sequence        first = members[i].text + Sequence{ after };
        std::vector<Sequence> starts{ first }, goes_on{ Sequence{ json_.comma() } + first };
        if (!members[i].required) {
            starts.push_back({ alone });
            goes_on.push_back({ after });
        }
        alone = builder_.any_of(starts);
        after = builder_.any_of(goes_on);
    }
    return builder_.any_of({ builder_.literal("{") + Sequence{ alone } });
}

} // namespace

Grammar json_schema_grammar(const OrderedJson & schema) {
    if (dump_json(schema).size() > kMaxSchemaBytes) {
        reject_schema("#", "schema is larger than " + std::to_string(kMaxSchemaBytes / 1024) + " KiB");
    }
    return Schema(schema).compile();
}

Grammar json_object_grammar() {
    GrammarBuilder builder;
    JsonText       json(builder);
    return builder.finish(json.object());
}

} // namespace penelope
