// Conversion of setting values: from command-line text, to JSON, and back to text.
#include "base/error.h"
#include "base/format.h"
#include "base/number_text.h"
#include "base/value_limits.h"
#include "train/setting_table.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>

namespace penelope {

namespace {

// The whole text as a finite number, not below 0.
template <typename T> std::optional<T> parse_number(const std::string & text) {
    T          value{};
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size() || value < T{}) {
        return std::nullopt;
    }
    if constexpr (std::is_floating_point_v<T>) {
        return std::isfinite(value) ? std::optional<T>(value) : std::nullopt;
    }
    return value;
}

std::optional<ggml_type> parse_type(const std::string & text) {
    for (int type = 0; type < GGML_TYPE_COUNT; type++) {
        const char * name = ggml_type_name(ggml_type(type));
        if (name && text == name) {
            return ggml_type(type);
        }
    }
    return std::nullopt;
}

constexpr char separator(double) {
    return ',';
}
constexpr char separator(uint32_t) {
    return ':';
}

// "A<separator>B". For learning rates "A" alone is allowed; the second is then 0.
template <typename T> std::optional<std::pair<T, T>> parse_pair(const std::string & text) {
    const size_t middle = text.find(separator(T{}));
    if (middle == std::string::npos && std::is_same_v<T, uint32_t>) {
        return std::nullopt;
    }
    const auto first  = parse_number<T>(text.substr(0, middle));
    const auto second = middle == std::string::npos ? std::optional<T>(T{}) : parse_number<T>(text.substr(middle + 1));
    return first && second ? std::optional(std::pair(*first, *second)) : std::nullopt;
}

template <typename T> bool put(T * place, const std::string & text) {
    const std::optional<T> value = parse_number<T>(text);
    *place                       = value.value_or(*place);
    return value.has_value();
}
bool put(bool * place, const std::string & text) {
    *place = text == "true";
    return text == "true" || text == "false";
}
bool put(std::string * place, const std::string & text) {
    *place = text;
    return true;
}
bool put(ggml_type * place, const std::string & text) {
    const auto value = parse_type(text);
    *place           = value.value_or(*place);
    return value.has_value();
}
template <typename T> bool put(const std::pair<T *, T *> & places, const std::string & text) {
    const auto value = parse_pair<T>(text);
    if (value) {
        *places.first  = value->first;
        *places.second = value->second;
    }
    return value.has_value();
}

template <typename T> OrderedJson value_at(const T * place) {
    return *place;
}
OrderedJson value_at(const float * place) {
    return shortest_decimal(*place);
}
OrderedJson value_at(const ggml_type * place) {
    return ggml_type_name(*place);
}
template <typename T> OrderedJson value_at(const std::pair<T *, T *> & places) {
    return OrderedJson::array({ *places.first, *places.second });
}

std::string expected_form(const SettingRow & row) {
    return std::string("--") + row.name + (*row.value != '\0' ? " " : "") + row.value + ": " + row.help;
}

// Why the value is not valid; "" if it is.
std::string problem_of(const SettingRow & row, const std::string & text) {
    switch (row.kind) {
        case SettingKind::integer: return check_integer(text, row.limits);
        case SettingKind::number: return check_number(text, row.limits);
        case SettingKind::choice: return check_choice(text, row.limits);
        case SettingKind::flag: return text == "true" || text == "false" ? "" : "'" + text + "' is not true or false";
        case SettingKind::text: break;
    }
    return "";
}

} // namespace

void set_setting(const SettingRow & row, TrainSettings & settings, const std::string & text) {
    std::string problem = problem_of(row, text);
    if (problem.empty() && !std::visit([&](auto place) { return put(place, text); }, row.slot(settings))) {
        const char between = std::string(row.name) == "interval" ? ':' : ',';
        problem            = "'" + text + "' is not " +
                  (row.kind == SettingKind::text ? std::string("two numbers with '") + between + "' between"
                                                 : "a valid value");
    }
    if (!problem.empty()) {
        throw Error(ErrorKind::usage, std::string("--") + row.name + ": " + problem, expected_form(row));
    }
}

OrderedJson setting_json(const SettingRow & row, const TrainSettings & settings) {
    // slot() returns a mutable pointer; this function only reads.
    return std::visit([](auto place) { return value_at(place); }, row.slot(const_cast<TrainSettings &>(settings)));
}

std::string setting_text(const SettingRow & row, const OrderedJson & value) {
    if (value.is_string()) {
        return row.kind == SettingKind::text ? in_quotes(value.get<std::string>()) : value.get<std::string>();
    }
    if (value.is_array() && value.size() == 2) {
        return dump_json(value[0]) + (value[0].is_number_float() ? "," : ":") + dump_json(value[1]);
    }
    return dump_json(value);
}

namespace {

const char * when_resumed(const SettingRow & row) {
    if (row.is_path) {
        return "the path, not the contents";
    }
    if (std::string(row.name) == "updates") {
        return "only to a larger number";
    }
    switch (row.use) {
        case SettingUse::weights: return "no";
        case SettingUse::scores: return "yes, with a warning if scores are no longer comparable";
        case SettingUse::files: return "yes";
        case SettingUse::none: break;
    }
    return "as `--updates`";
}

} // namespace

std::string settings_markdown() {
    std::string out = "| setting | default | may change with `--resume` |\n|---|---|---|\n";
    for (const SettingRow & row : setting_table()) {
        const std::string value = *row.value != '\0' ? std::string(" ") + row.value : "";
        out += "| `--" + std::string(row.name) + value + "` | " + row.fallback + " | " + when_resumed(row) + " |\n";
    }
    return out;
}

} // namespace penelope
