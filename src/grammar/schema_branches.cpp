#include "grammar/schema_branches.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

using Resolve = std::function<OrderedJson(const std::string &)>;

constexpr int kMostRefs = 16; // one to another

OrderedJson followed(OrderedJson schema, const Resolve & resolve) {
    for (int i = 0; i < kMostRefs && schema.is_object() && schema.contains("$ref"); i++) {
        schema = resolve(schema["$ref"].get<std::string>());
    }
    return schema;
}

// The values it allows, if it names them.
OrderedJson constants(const OrderedJson & schema) {
    if (!schema.is_object()) {
        return nullptr;
    }
    return schema.contains("const") ? OrderedJson::array({ schema["const"] }) : schema.value("enum", OrderedJson());
}

std::vector<std::string> types(const OrderedJson & schema) {
    std::vector<std::string> out;
    const OrderedJson        named = schema.is_object() ? schema.value("type", OrderedJson()) : OrderedJson();
    for (const OrderedJson & one : named.is_array() ? named : OrderedJson::array({ named })) {
        if (one.is_string()) {
            out.push_back(one.get<std::string>());
        }
    }
    return out;
}

bool same_type(const std::string & a, const std::string & b) {
    return a == b || (a == "integer" && b == "number") || (a == "number" && b == "integer");
}

bool is_required(const OrderedJson & schema, const std::string & name) {
    const OrderedJson required = schema.value("required", OrderedJson::array());
    return std::find(required.begin(), required.end(), OrderedJson(name)) != required.end();
}

bool disjoint(const OrderedJson & a, const OrderedJson & b, const Resolve & resolve, int depth = 0) {
    const OrderedJson a_values = constants(a), b_values = constants(b);
    if (a_values.is_array() && b_values.is_array()) {
        return std::none_of(a_values.begin(), a_values.end(), [&](const OrderedJson & value) {
            return std::find(b_values.begin(), b_values.end(), value) != b_values.end();
        });
    }
    const std::vector<std::string> a_types = types(a), b_types = types(b);
    const bool                     meet = std::any_of(a_types.begin(), a_types.end(), [&](const auto & x) {
        return std::any_of(b_types.begin(), b_types.end(), [&](const auto & y) { return same_type(x, y); });
    });
    if (!a_types.empty() && !b_types.empty() && !meet) {
        return true;
    }
    if (a_types != std::vector<std::string>{ "object" } || a_types != b_types) {
        return false;
    }
    if (depth == kMostRefs) {
        return false; // schemas that hold themselves
    }
    // Objects that both need a property and give it other values.
    const OrderedJson none = OrderedJson::object(), a_properties = a.value("properties", none),
                      b_properties = b.value("properties", none);
    for (const auto & [name, schema] : a_properties.items()) {
        if (b_properties.contains(name) && is_required(a, name) && is_required(b, name) &&
            disjoint(followed(schema, resolve), followed(b_properties[name], resolve), resolve, depth + 1)) {
            return true;
        }
    }
    return false;
}

} // namespace

bool has_type(const OrderedJson & value, const std::string & type) {
    if (type == "integer") {
        return value.is_number() && value.get<double>() == std::floor(value.get<double>());
    }
    return (type == "number" && value.is_number()) || (type == "object" && value.is_object()) ||
           (type == "array" && value.is_array()) || (type == "string" && value.is_string()) ||
           (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null());
}

bool branches_are_disjoint(const OrderedJson & branches, const Resolve & resolve) {
    for (size_t i = 0; i < branches.size(); i++) {
        for (size_t j = i + 1; j < branches.size(); j++) {
            if (!disjoint(followed(branches[i], resolve), followed(branches[j], resolve), resolve)) {
                return false;
            }
        }
    }
    return true;
}

} // namespace penelope
