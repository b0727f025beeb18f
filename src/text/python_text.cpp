#include "text/python_text.h"

namespace penelope {

namespace {

constexpr std::string_view spaces[] = {
    " ",
    "\t",
    "\n",
    "\v",
    "\f",
    "\r",
    "\x1C",
    "\x1D",
    "\x1E",
    "\x1F",
    "\xC2\x85",
    "\xC2\xA0",
    "\xE1\x9A\x80",
    "\xE2\x80\x80",
    "\xE2\x80\x81",
    "\xE2\x80\x82",
    "\xE2\x80\x83",
    "\xE2\x80\x84",
    "\xE2\x80\x85",
    "\xE2\x80\x86",
    "\xE2\x80\x87",
    "\xE2\x80\x88",
    "\xE2\x80\x89",
    "\xE2\x80\x8A",
    "\xE2\x80\xA8",
    "\xE2\x80\xA9",
    "\xE2\x80\xAF",
    "\xE2\x81\x9F",
    "\xE3\x80\x80",
};

// The size of the space at an edge of the text, 0 for none; `edge` gives n bytes of it.
template <typename Edge> size_t space_at(std::string_view text, Edge && edge) {
    for (const std::string_view space : spaces) {
        if (text.size() >= space.size() && edge(space.size()) == space) {
            return space.size();
        }
    }
    return 0;
}

} // namespace

std::string_view python_lstrip(std::string_view text) {
    while (const size_t n = space_at(text, [&](size_t size) { return text.substr(0, size); })) {
        text.remove_prefix(n);
    }
    return text;
}

std::string_view python_rstrip(std::string_view text) {
    while (const size_t n = space_at(text, [&](size_t size) { return text.substr(text.size() - size); })) {
        text.remove_suffix(n);
    }
    return text;
}

} // namespace penelope
