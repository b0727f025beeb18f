#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace penelope {

Utf8Unit next_utf8_unit(std::string_view text, size_t pos) {
    const auto    byte = [&](size_t i) { return static_cast<uint8_t>(text[pos + i]); };
    const uint8_t lead = byte(0);
    if (lead < 0x80) {
        return { 1, Utf8State::whole };
    }
    // The second byte's range rules out overlong forms, surrogates and values above U+10FFFF.
    size_t  size = 0;
    uint8_t low = 0x80, high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
        size = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        size = 3;
        low  = lead == 0xE0 ? 0xA0 : 0x80;
        high = lead == 0xED ? 0x9F : 0xBF;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        size = 4;
        low  = lead == 0xF0 ? 0x90 : 0x80;
        high = lead == 0xF4 ? 0x8F : 0xBF;
    } else {
        return { 1, Utf8State::broken };
    }
    for (size_t i = 1; i < size; i++) {
        if (pos + i == text.size()) {
            return { i, Utf8State::unfinished };
        }
        if (byte(i) < low || byte(i) > high) {
            return { i, Utf8State::broken };
        }
        low  = 0x80;
        high = 0xBF;
    }
    return { size, Utf8State::whole };
}

std::string utf8_text(uint32_t code_point) {
    const auto last = [&](int shift) { return char(0x80 | (code_point >> shift & 0x3F)); };
    if (code_point < 0x80) {
        return { char(code_point) };
    }
    if (code_point < 0x800) {
        return { char(0xC0 | code_point >> 6), last(0) };
    }
    if (code_point < 0x10000) {
        return { char(0xE0 | code_point >> 12), last(6), last(0) };
    }
    return { char(0xF0 | code_point >> 18), last(12), last(6), last(0) };
}

uint32_t code_point(std::string_view character) {
    const auto byte  = [&](size_t i) { return uint32_t(static_cast<unsigned char>(character[i])); };
    uint32_t   value = character.size() == 1 ? byte(0) : byte(0) & (0xFFu >> (character.size() + 1));
    for (size_t i = 1; i < character.size(); i++) {
        value = value << 6 | (byte(i) & 0x3F);
    }
    return value;
}

size_t valid_utf8_prefix(std::string_view text) {
    constexpr uint64_t high_bits = 0x8080808080808080ull;
    size_t             pos       = 0;
    while (pos < text.size()) {
        while (pos + sizeof(uint64_t) <= text.size()) {
            uint64_t word = 0;
            std::memcpy(&word, text.data() + pos, sizeof(word));
            if (word & high_bits) {
                break;
            }
            pos += sizeof(word);
        }
        if (pos == text.size()) {
            break;
        }
        const Utf8Unit unit = next_utf8_unit(text, pos);
        if (unit.state != Utf8State::whole) {
            break;
        }
        pos += unit.size;
    }
    return pos;
}

void append_valid_utf8(std::string & out, std::string_view text) {
    while (!text.empty()) {
        const size_t n_valid = valid_utf8_prefix(text);
        out.append(text.substr(0, n_valid));
        text.remove_prefix(n_valid);
        if (!text.empty()) {
            out.append(utf8_replacement);
            text.remove_prefix(next_utf8_unit(text, 0).size);
        }
    }
}

} // namespace penelope
