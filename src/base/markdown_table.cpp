#include "base/markdown_table.h"

#include <algorithm>

namespace penelope {

namespace {

// A bar or a line break in a cell would end it.
std::string in_cell(const std::string & text) {
    std::string out;
    for (char c : text) {
        out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
    }
    return out;
}

// Characters, not bytes.
size_t width_of(const std::string & text) {
    return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

} // namespace

std::string MarkdownTable::text(bool pad) const {
    std::vector<std::vector<std::string>> lines{ columns };
    lines.insert(lines.end(), rows.begin(), rows.end());
    std::vector<size_t> widths(columns.size(), pad ? 3 : 0);
    for (std::vector<std::string> & line : lines) {
        for (size_t i = 0; i < line.size(); i++) {
            line[i]   = in_cell(line[i]);
            widths[i] = pad ? std::max(widths[i], width_of(line[i])) : 0;
        }
    }
    std::string out;
    for (size_t n = 0; n < lines.size(); n++) {
        for (size_t i = 0; i < columns.size(); i++) {
            const std::string & cell = lines[n][i];
            const std::string   padding(pad ? widths[i] - width_of(cell) : 0, ' ');
            out += "| " + (numeric[i] ? padding + cell : cell + padding) + " ";
        }
        out += "|\n";
        for (size_t i = 0; n == 0 && i < columns.size(); i++) {
            const size_t n_dashes = pad ? widths[i] + 2 : 3;
            out +=
                "|" + (numeric[i] ? std::string(pad ? n_dashes - 1 : n_dashes, '-') + ":" : std::string(n_dashes, '-'));
        }
        out += n == 0 ? "|\n" : "";
    }
    return out;
}

} // namespace penelope
