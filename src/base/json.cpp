#include "base/json.h"

#include "base/error.h"
#include "base/format.h"
#include "base/mapped_file.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <vector>

namespace penelope {

namespace {

// "line 3, column 14" of a byte offset.
std::string position(std::string_view text, size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const size_t           line   = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t           start  = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - start + 1);
}

// Offset of the first character outside of strings that `is_it` takes, npos when there is none. Text that is no JSON
// may give either; it is refused anyway.
template <typename Predicate> size_t find_outside_strings(std::string_view text, Predicate is_it) {
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (is_it(c)) {
            return i;
        }
    }
    return std::string_view::npos;
}

// The bracket that goes too deep.
size_t find_too_deep(std::string_view text, int max_depth) {
    int depth = 0;
    return find_outside_strings(text, [&](char c) {
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        return depth > max_depth;
    });
}

// The comma after which an object has more keys than that.
size_t find_too_many_keys(std::string_view text, size_t max_keys) {
    struct Open {
        bool   is_object;
        size_t n_keys;
    };
    std::vector<Open> open;
    return find_outside_strings(text, [&](char c) {
        if (c == '[' || c == '{') {
            open.push_back({ c == '{', 1 });
        } else if ((c == ']' || c == '}') && !open.empty()) {
            open.pop_back();
        }
        return c == ',' && !open.empty() && open.back().is_object && ++open.back().n_keys > max_keys;
    });
}

// The library's text without its "[json.exception.parse_error.101] parse error at line 1, column 2: " in front.
std::string reason(const char * what) {
    std::string text = what;
    for (const char * mark : { "] ", "column " }) {
        const size_t at = text.find(mark);
        if (at != std::string::npos) {
            text.erase(0, at + std::string_view(mark).size());
        }
    }
    const size_t colon  = text.find(": ");
    const bool   digits = colon != std::string::npos && std::all_of(text.begin(), text.begin() + long(colon),
                                                                    [](char c) { return c >= '0' && c <= '9'; });
    return digits ? text.substr(colon + 2) : text;
}

template <typename T> constexpr const char * expected_name() {
    if constexpr (std::is_same_v<T, std::string>) {
        return "a string";
    } else if constexpr (std::is_same_v<T, bool>) {
        return "true or false";
    } else if constexpr (std::is_same_v<T, int64_t>) {
        return "an integer";
    } else {
        return "a number";
    }
}

template <typename T> std::optional<T> convert(const Json & value) {
    if constexpr (std::is_same_v<T, std::string>) {
        return value.is_string() ? std::optional<T>(value.get<std::string>()) : std::nullopt;
    } else if constexpr (std::is_same_v<T, bool>) {
        return value.is_boolean() ? std::optional<T>(value.get<bool>()) : std::nullopt;
    } else if constexpr (std::is_same_v<T, double>) {
        return value.is_number() ? std::optional<T>(value.get<double>()) : std::nullopt;
    } else {
        if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)) {
            return std::nullopt;
        }
        if (value.is_number_integer()) {
            return value.get<int64_t>();
        }
        // Some writers put 1e4 or 32.0 where an integer is meant; beyond 2^53 a double does not say which integer.
        if (value.is_number_float()) {
            const double number = value.get<double>();
            if (std::trunc(number) == number && std::fabs(number) <= 9007199254740992.0) {
                return static_cast<int64_t>(number);
            }
        }
        return std::nullopt;
    }
}

[[noreturn]] void fail_field(const std::string & origin, const std::string & field, const std::string & what) {
    throw Error(ErrorKind::format, origin + ": field " + in_quotes(field) + ": " + what);
}

// place: of an offset, for messages.
template <typename Value, typename Describe>
Value parse(std::string_view text, const std::string & origin, const JsonLimits & limits, const std::string & hint,
            Describe describe) {
    if (text.size() > limits.max_bytes) {
        throw Error(ErrorKind::format,
                    origin + ": " + format_bytes(text.size()) + " of JSON, at most " + format_bytes(limits.max_bytes) +
                        " are read",
                    hint);
    }
    const size_t deep = find_too_deep(text, limits.max_depth);
    if (deep != std::string_view::npos) {
        throw Error(ErrorKind::format,
                    describe(deep) + ": JSON nested deeper than " + std::to_string(limits.max_depth) + " levels", hint);
    }
    if constexpr (std::is_same_v<Value, OrderedJson>) {
        const size_t offending = find_too_many_keys(text, limits.max_keys);
        if (offending != std::string_view::npos) {
            throw Error(ErrorKind::format,
                        describe(offending) + ": a JSON object of more than " + std::to_string(limits.max_keys) +
                            " keys",
                        hint);
        }
    }
    std::set<std::string> names;
    const auto            check_unique = [&](int depth, typename Value::parse_event_t event, Value & parsed) {
        if (event == Value::parse_event_t::key && depth == 1) {
            const auto & name = parsed.template get_ref<const std::string &>();
            if (!names.insert(name).second) {
                throw Error(ErrorKind::format, origin + ": " + in_quotes(name) + " appears twice", hint);
            }
        }
        return true;
    };
    try {
        return limits.unique_keys ? Value::parse(text.begin(), text.end(), check_unique)
                                  : Value::parse(text.begin(), text.end());
    } catch (const typename Value::parse_error & error) {
        throw Error(ErrorKind::format, describe(error.byte > 0 ? error.byte - 1 : 0) + ": " + reason(error.what()),
                    hint);
    } catch (const typename Value::exception & error) { // a number no double holds
        throw Error(ErrorKind::format, origin + ": " + reason(error.what()), hint);
    }
}

// As place, for texts of several lines.
auto line_and_column(std::string_view text, const std::string & origin) {
    return [text, &origin](size_t offset) { return origin + ": " + position(text, offset); };
}

} // namespace

Json parse_json(std::string_view text, const std::string & origin, const JsonLimits & limits) {
    return parse<Json>(text, origin, limits, "", line_and_column(text, origin));
}

Json parse_json_line(std::string_view line, const std::string & origin, const std::string & hint,
                     const char * separator) {
    return parse<Json>(line, origin, {}, hint, [&](size_t offset) {
        return origin + separator + "column " + std::to_string(std::min(offset, line.size()) + 1);
    });
}

Json read_json_file(const std::string & path, const JsonLimits & limits) {
    const MappedFile file = MappedFile::open(path);
    return parse_json({ reinterpret_cast<const char *>(file.data()), file.size() }, in_quotes(path, 1024), limits);
}

OrderedJson parse_ordered_json(std::string_view text, const std::string & origin, const JsonLimits & limits) {
    return parse<OrderedJson>(text, origin, limits, "", line_and_column(text, origin));
}

std::optional<Json> try_parse_json(std::string_view text) {
    if (find_too_deep(text, JsonLimits().max_depth) != std::string_view::npos) {
        return std::nullopt;
    }
    Json value = Json::parse(text.begin(), text.end(), nullptr, false);
    return value.is_discarded() ? std::nullopt : std::optional<Json>(std::move(value));
}

std::string dump_json(const Json & value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string dump_json(const OrderedJson & value, int indent) {
    return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

template <typename T>
std::optional<T> json_find(const Json & object, const std::string & field, const std::string & origin) {
    if (!object.is_object()) {
        throw Error(ErrorKind::format, origin + ": expected a JSON object, found " + object.type_name());
    }
    const auto it = object.find(field);
    if (it == object.end() || it->is_null()) {
        return std::nullopt;
    }
    std::optional<T> value = convert<T>(*it);
    if (!value) {
        fail_field(origin, field,
                   std::string("expected ") + expected_name<T>() + ", found " +
                       (it->is_primitive() ? in_quotes(dump_json(*it)) : std::string("an ") + it->type_name()));
    }
    return value;
}

template <typename T> T json_get(const Json & object, const std::string & field, const std::string & origin) {
    std::optional<T> value = json_find<T>(object, field, origin);
    if (!value) {
        fail_field(origin, field, std::string("missing, expected ") + expected_name<T>());
    }
    return *std::move(value);
}

template std::string json_get<std::string>(const Json &, const std::string &, const std::string &);
template int64_t     json_get<int64_t>(const Json &, const std::string &, const std::string &);
template double      json_get<double>(const Json &, const std::string &, const std::string &);
template bool        json_get<bool>(const Json &, const std::string &, const std::string &);

template std::optional<std::string> json_find<std::string>(const Json &, const std::string &, const std::string &);
template std::optional<int64_t>     json_find<int64_t>(const Json &, const std::string &, const std::string &);
template std::optional<double>      json_find<double>(const Json &, const std::string &, const std::string &);
template std::optional<bool>        json_find<bool>(const Json &, const std::string &, const std::string &);

} // namespace penelope
