#include "gguf/split_name.h"

#include <cstdio>

namespace penelope {

std::optional<SplitName> parse_split_name(std::string_view path) {
    constexpr std::string_view form = "-00000-of-00000.gguf";
    if (path.size() <= form.size()) {
        return std::nullopt;
    }
    const std::string_view tail = path.substr(path.size() - form.size());
    for (size_t i = 0; i < form.size(); i++) {
        const bool is_digit = tail[i] >= '0' && tail[i] <= '9';
        if (form[i] == '0' ? !is_digit : form[i] != tail[i]) {
            return std::nullopt;
        }
    }
    const auto number_at = [&](size_t begin) { return std::stoi(std::string(tail.substr(begin, 5))); };
    SplitName  name{ std::string(path.substr(0, path.size() - form.size())), number_at(1), number_at(10) };
    if (name.number < 1 || name.number > name.count) {
        return std::nullopt;
    }
    return name;
}

std::string split_path(const std::string & prefix, int number, int count) {
    char tail[64];
    std::snprintf(tail, sizeof tail, "-%05d-of-%05d.gguf", number, count);
    return prefix + tail;
}

} // namespace penelope
