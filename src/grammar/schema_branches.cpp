#include "grammar/schema_branches.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

constexpr int    kMaxRefs        = 16;      // chain of $ref
constexpr size_t kMaxComparisons = 1000000; // comparisons; recursive schemas could take forever

const OrderedJson kNothing, kNoProperties = OrderedJson::object(), kNoNames = OrderedJson::array();

const OrderedJson & member(const OrderedJson & schema, const char * name, const OrderedJson & fallback = kNothing) {
    const auto found = schema.is_object() ? schema.find(name) : schema.end();
    return found != schema.end() ? *found : fallback;
}

// The values of enum or const, if present.
std::vector<const OrderedJson *> constants(const OrderedJson & schema) {
    std::vector<const OrderedJson *> values;
    if (const OrderedJson & only = member(schema, "const"); schema.is_object() && schema.contains("const")) {
        values.push_back(&only);
    } else if (const OrderedJson & list = member(schema, "enum"); list.is_array()) {
        for (const OrderedJson & value : list) {
            values.push_back(&value);
        }
    }
    return values;
}

std::vector<std::string> types(const OrderedJson & schema) {
    const OrderedJson &      named = member(schema, "type");
    std::vector<std::string> out;
    if (named.is_string()) {
        out.push_back(named.get<std::string>());
    }
    for (const OrderedJson & one : named.is_array() ? named : kNoNames) {
        if (one.is_string()) {
            out.push_back(one.get<std::string>());
        }
    }
    return out;
}

bool same_type(const std::string & a, const std::string & b) {
    return a == b || (a == "integer" && b == "number") || (a == "number" && b == "integer");
}

class Branches {
  public:
    explicit Branches(const ResolveRef & resolve) : resolve_(resolve) {}

    bool disjoint(const OrderedJson & first, const OrderedJson & second, int depth = 0);

  private:
    const OrderedJson & followed(const OrderedJson & schema) const {
        const OrderedJson * at = &schema;
        for (int i = 0; i < kMaxRefs && member(*at, "$ref").is_string(); i++) {
            at = &resolve_(member(*at, "$ref").get<std::string>());
        }
        return *at;
    }

    // False when n more comparisons exceed the limit.
    bool spend(size_t n) {
        left_ -= std::min(left_, n);
        return left_ > 0;
    }

    static bool is_required(const OrderedJson & required, const std::string & name) {
        return std::find(required.begin(), required.end(), OrderedJson(name)) != required.end();
    }

    const ResolveRef & resolve_;
    size_t             left_ = kMaxComparisons;
};

bool Branches::disjoint(const OrderedJson & first, const OrderedJson & second, int depth) {
    const OrderedJson &a = followed(first), &b = followed(second);
    const auto         a_values = constants(a), b_values = constants(b);
    if (!spend(1 + a_values.size() * b_values.size())) {
        return false;
    }
    if (!a_values.empty() && !b_values.empty()) {
        return std::none_of(a_values.begin(), a_values.end(), [&](const OrderedJson * x) {
            return std::any_of(b_values.begin(), b_values.end(), [&](const OrderedJson * y) { return *x == *y; });
        });
    }
    const std::vector<std::string> a_types = types(a), b_types = types(b);
    if (!spend(a_types.size() * b_types.size())) {
        return false;
    }
    const bool meet = std::any_of(a_types.begin(), a_types.end(), [&](const auto & x) {
        return std::any_of(b_types.begin(), b_types.end(), [&](const auto & y) { return same_type(x, y); });
    });
    if (!a_types.empty() && !b_types.empty() && !meet) {
        return true;
    }
    if (a_types != std::vector<std::string>{ "object" } || a_types != b_types) {
        return false;
    }
    if (depth == kMaxRefs) {
        return false; // recursive schemas
    }
    // Objects exclude each other if both require a property with different constants.
    const OrderedJson &a_properties = member(a, "properties", kNoProperties),
                      &b_properties = member(b, "properties", kNoProperties);
    const OrderedJson &a_required = member(a, "required", kNoNames), &b_required = member(b, "required", kNoNames);
    for (const auto & [name, schema] : a_properties.items()) {
        if (!spend(b_properties.size() + a_required.size() + b_required.size())) {
            return false;
        }
        if (b_properties.contains(name) && is_required(a_required, name) && is_required(b_required, name) &&
            disjoint(schema, b_properties[name], depth + 1)) {
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

bool branches_are_disjoint(const OrderedJson & list, const ResolveRef & resolve) {
    Branches branches(resolve);
    for (size_t i = 0; i < list.size(); i++) {
        for (size_t j = i + 1; j < list.size(); j++) {
            if (!branches.disjoint(list[i], list[j])) {
                return false;
            }
        }
    }
    return true;
}

} // namespace penelope
