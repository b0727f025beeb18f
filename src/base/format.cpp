#include "base/format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace penelope {

namespace {

std::string print(const char * format, double value, const char * unit) {
    char buffer[64];
    std::snprintf(buffer, sizeof(buffer), format, value, unit);
    return buffer;
}

// Three significant digits where the number has a fraction.
std::string scaled(double value, const char * unit) {
    return print(value < 10 ? "%.2f%s" : value < 100 ? "%.1f%s" : "%.0f%s", value, unit);
}

// Length of the UTF-8 sequence that starts at `text[i]`, 0 when it is not one (overlong and surrogate forms included).
size_t utf8_length(std::string_view text, size_t i) {
    const auto     byte = [&](size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
    const auto     tail = [&](size_t k) { return (byte(k) & 0xC0) == 0x80; };
    const unsigned c    = byte(0);
    if (c < 0x80) {
        return 1;
    }
    if (c >= 0xC2 && c <= 0xDF) {
        return tail(1) ? 2 : 0;
    }
    if (c >= 0xE0 && c <= 0xEF) {
        const bool bad = (c == 0xE0 && byte(1) < 0xA0) || (c == 0xED && byte(1) > 0x9F);
        return !bad && tail(1) && tail(2) ? 3 : 0;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        const bool bad = (c == 0xF0 && byte(1) < 0x90) || (c == 0xF4 && byte(1) > 0x8F);
        return !bad && tail(1) && tail(2) && tail(3) ? 4 : 0;
    }
    return 0;
}

} // namespace

std::string format_bytes(uint64_t bytes) {
    if (bytes < 1024) {
        return std::to_string(bytes) + " B";
    }
    static constexpr const char * units[] = { " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" };
    double                        value   = static_cast<double>(bytes) / 1024;
    size_t                        unit    = 0;
    // 1023.5 would print as 1024 of the smaller unit
    while (value >= 1023.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        ++unit;
    }
    return scaled(value, units[unit]);
}

std::string format_duration(double ms) {
    if (ms < 999.5) {
        return scaled(ms, " ms");
    }
    if (ms < 59950) {
        return scaled(ms / 1000, " s");
    }
    const uint64_t seconds = static_cast<uint64_t>(std::round(ms / 1000));
    char           buffer[64];
    if (seconds < 3600) {
        std::snprintf(buffer, sizeof(buffer), "%u min %02u s", unsigned(seconds / 60), unsigned(seconds % 60));
    } else {
        std::snprintf(buffer, sizeof(buffer), "%llu h %02u min", static_cast<unsigned long long>(seconds / 3600),
                      unsigned(seconds % 3600 / 60));
    }
    return buffer;
}

std::string format_count(uint64_t n) {
    if (n < 1000) {
        return std::to_string(n);
    }
    static constexpr const char * units[] = { "K", "M", "B", "T" };
    double                        value   = static_cast<double>(n) / 1000;
    size_t                        unit    = 0;
    while (value >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1000;
        ++unit;
    }
    return unit == 0 ? print("%.1f%s", value, units[unit]) : print("%.2f%s", value, units[unit]);
}

std::string format_shape(const std::vector<int64_t> & ne) {
    std::vector<std::string> parts;
    for (const int64_t n : ne) {
        parts.push_back(std::to_string(n));
    }
    return "[" + join(parts, ", ") + "]";
}

std::string join(const std::vector<std::string> & parts, std::string_view separator) {
    std::string out;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) {
            out += separator;
        }
        out += parts[i];
    }
    return out;
}

std::vector<std::string> split(const std::string & text, char separator) {
    std::vector<std::string> parts;
    std::istringstream       in(text);
    for (std::string part; std::getline(in, part, separator);) {
        parts.push_back(part);
    }
    return parts;
}

bool ends_with(std::string_view text, std::string_view tail) {
    return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

std::string to_upper(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return char(std::toupper(c)); });
    return out;
}

std::string to_lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    return out;
}

std::string in_quotes(std::string_view text, size_t max_bytes) {
    std::string out = "'";
    for (size_t i = 0; i < text.size();) {
        if (out.size() > max_bytes) {
            out += "...";
            break;
        }
        const size_t        n = utf8_length(text, i);
        const unsigned char c = static_cast<unsigned char>(text[i]);
        if (c == '\n' || c == '\t') {
            out += c == '\n' ? "\\n" : "\\t";
            i += 1;
        } else if (n == 0 || c < 0x20 || c == 0x7F) {
            char buffer[8];
            std::snprintf(buffer, sizeof(buffer), "\\x%02X", c);
            out += buffer;
            i += 1;
        } else {
            out += text.substr(i, n);
            i += n;
        }
    }
    return out + "'";
}

} // namespace penelope
