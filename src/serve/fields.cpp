#include "serve/fields.h"

#include "serve/errors.h"

#include <cmath>
#include <cstdint>

namespace penelope {

namespace {

// Reads any JSON form of an integer. Not through double, which cannot represent all integers above 2^53.
bool lies_between(const Json & value, int64_t least, int64_t most) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)) {
        return false;
    }
    if (value.is_number_integer()) {
        return value.get<int64_t>() >= least && value.get<int64_t>() <= most;
    }
    const double number = value.get<double>();
    return number >= double(least) && number <= double(most) && number < 0x1p63;
}

} // namespace

Fields::Fields(const Json & object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) {
        throw RequestError(400, (path_.empty() ? "body" : path_) + ": expected a JSON object");
    }
}

void Fields::fail(const std::string & name, const std::string & why) const {
    throw RequestError(400, path_ + name + ": " + why, path_ + name);
}

const Json * Fields::find(const std::string & name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<int64_t> Fields::integer(const std::string & name, int64_t least, int64_t most) const {
    const Json * value = find(name);
    if (!value) {
        return std::nullopt;
    }
    // Some clients send 3.0 for 3.
    const double number = value->is_number() ? value->get<double>() : NAN;
    if (!(std::isfinite(number) && number == std::floor(number))) {
        fail(name, "expected an integer");
    }
    if (!lies_between(*value, least, most)) {
        fail(name, "expected " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value->is_number_float() ? int64_t(number) : value->get<int64_t>();
}

std::optional<double> Fields::number(const std::string & name, double least, double most) const {
    const Json * value = find(name);
    if (!value) {
        return std::nullopt;
    }
    const double number = value->is_number() ? value->get<double>() : NAN;
    if (!(number >= least && number <= most)) {
        fail(name, "expected a number from " + dump_json(Json(least)) + " to " + dump_json(Json(most)));
    }
    return number;
}

std::optional<bool> Fields::boolean(const std::string & name) const {
    const Json * value = find(name);
    if (!value) {
        return std::nullopt;
    }
    if (!value->is_boolean()) {
        fail(name, "expected true or false");
    }
    return value->get<bool>();
}

std::optional<std::string> Fields::text(const std::string & name) const {
    const Json * value = find(name);
    if (!value) {
        return std::nullopt;
    }
    if (!value->is_string()) {
        fail(name, "expected a string");
    }
    return value->get<std::string>();
}

std::optional<std::string> Fields::nonempty_text(const std::string & name) const {
    const std::optional<std::string> value = text(name);
    return value && !value->empty() ? value : std::nullopt;
}

std::optional<Fields> Fields::object(const std::string & name) const {
    const Json * value = find(name);
    if (!value) {
        return std::nullopt;
    }
    if (!value->is_object()) {
        fail(name, "expected an object");
    }
    return Fields(*value, path_ + name + ".");
}

std::vector<std::string> Fields::texts(const std::string & name, size_t most, size_t longest) const {
    const Json * value = find(name);
    if (!value) {
        return {};
    }
    std::vector<std::string> list;
    for (const Json & one : value->is_array() ? *value : Json::array({ *value })) {
        if (!one.is_string()) {
            fail(name, "expected a string or a list of strings");
        }
        list.push_back(one.get<std::string>());
        if (list.back().size() > longest) {
            fail(name, "a string is longer than " + std::to_string(longest) + " bytes");
        }
    }
    if (list.size() > most) {
        fail(name, "more than " + std::to_string(most) + " strings");
    }
    return list;
}

Json parse_body(const std::string & body) {
    try {
        JsonLimits limits;
        limits.max_depth    = 32;
        Json         object = parse_json(body, "body", limits);
        const Fields checked(object);
        return object;
    } catch (const Error & error) {
        throw RequestError(400, error.message());
    }
}

} // namespace penelope
