// Checks and typed access of option values.
#include "options.h"

#include "base/format.h"
#include "base/value_limits.h"
#include "infer/session.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

namespace penelope {

std::optional<bool> parse_flag(std::string_view text) {
    for (const char * word : { "true", "1", "on", "yes" }) {
        if (text == word) {
            return true;
        }
    }
    for (const char * word : { "false", "0", "off", "no" }) {
        if (text == word) {
            return false;
        }
    }
    return std::nullopt;
}

namespace {

constexpr int max_step = 1000;

template <typename T> std::optional<T> parse_number(std::string_view text) {
    T          value{};
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::vector<std::string> split(const std::string & text, char separator) {
    std::vector<std::string> parts;
    size_t                   start = 0;
    for (size_t end = 0; end != std::string::npos; start = end + 1) {
        end = text.find(separator, start);
        parts.push_back(text.substr(start, end - start));
    }
    return parts;
}

// "0-2,5" -> 0 1 2 5; nullopt when the text is no such list.
std::optional<std::vector<int>> parse_steps(const std::string & text) {
    std::vector<int> out;
    if (text == "auto") {
        return std::vector<int>{ kAutoSteps };
    }
    for (const std::string & part : split(text, ',')) {
        const size_t dash = part.find('-');
        const auto   low  = parse_number<int>(part.substr(0, dash));
        const auto   high = dash == std::string::npos ? low : parse_number<int>(part.substr(dash + 1));
        if (!low || !high || *low < 0 || *high < *low || *high > max_step) {
            return std::nullopt;
        }
        for (int k = *low; k <= *high; ++k) {
            out.push_back(k);
        }
    }
    return out;
}

// Why the value is invalid for this option; "" if it is valid.
std::string check_value(const OptionRow & row, const std::string & value) {
    switch (row.kind) {
        case OptionKind::integer: return check_integer(value, row.limits);
        case OptionKind::number: return check_number(value, row.limits);
        case OptionKind::flag: return parse_flag(value) ? "" : "'" + value + "' is not true or false";
        case OptionKind::choice: return check_choice(value, row.limits);
        case OptionKind::steps:
            return parse_steps(value) ? "" : "'" + value + "' is not a number, a range (0-6), a list (1,3,5) or auto";
        case OptionKind::text:
        case OptionKind::argument: return "";
    }
    return "";
}

} // namespace

const OptionRow & Options::row(std::string_view name) const {
    for (const OptionRow * candidate : command_options(command_)) {
        if (name == candidate->name) {
            return *candidate;
        }
    }
    throw std::logic_error("command '" + command_ + "' has no option '" + std::string(name) + "'");
}

void Options::set(const OptionRow & row, const std::vector<std::string> & values, OptionSource source,
                  const std::string & where) {
    const std::string label = row.kind == OptionKind::argument ? std::string(row.value) : "--" + std::string(row.name);
    for (const std::string & value : values) {
        const std::string wrong = check_value(row, value);
        if (!wrong.empty()) {
            throw UsageError(label + ": " + wrong + (where.empty() ? "" : " (from " + where + ")"),
                             option_help_line(row));
        }
    }
    if (values.size() > 1 && !row.repeats && source != OptionSource::flag) {
        throw UsageError(label + ": expected one value, found a list (from " + where + ")", option_help_line(row));
    }
    const auto found = values_.find(row.name);
    if (found == values_.end() || found->second.source < source) {
        values_.insert_or_assign(row.name, Value{ values, source });
    }
}

void Options::replace(std::string_view name, const std::string & value) {
    values_.insert_or_assign(row(name).name, Value{ { value }, OptionSource::flag });
}

bool Options::given(std::string_view name) const {
    row(name);
    return values_.find(name) != values_.end();
}

OptionSource Options::source(std::string_view name) const {
    row(name);
    const auto found = values_.find(name);
    return found == values_.end() ? OptionSource::fallback : found->second.source;
}

std::string Options::single(std::string_view name) const {
    const OptionRow & r     = row(name);
    const auto        found = values_.find(name);
    // The last of several flags wins.
    return found == values_.end() || found->second.values.empty() ? r.fallback : found->second.values.back();
}

bool Options::flag(std::string_view name) const {
    const std::string value = single(name);
    return parse_flag(value).value_or(false);
}

std::string Options::text(std::string_view name) const {
    return single(name);
}

int64_t Options::integer(std::string_view name) const {
    return parse_number<int64_t>(single(name)).value_or(0);
}

double Options::number(std::string_view name) const {
    return parse_number<double>(single(name)).value_or(0);
}

std::vector<std::string> Options::list(std::string_view name) const {
    row(name);
    const auto found = values_.find(name);
    return found == values_.end() ? std::vector<std::string>{} : found->second.values;
}

std::vector<int> Options::steps(std::string_view name) const {
    return parse_steps(single(name)).value_or(std::vector<int>{});
}

std::string Options::required(std::string_view name) const {
    const OptionRow & r = row(name);
    if (!given(name)) {
        const std::string label = r.kind == OptionKind::argument ? std::string(r.value) : "--" + std::string(name);
        throw UsageError(command_ + ": " + label + " is missing", option_help_line(r));
    }
    return single(name);
}

} // namespace penelope
