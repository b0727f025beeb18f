#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

namespace penelope {

namespace {

constexpr int n_code_points = 0x100 + 68;

struct Alphabet {
    std::array<uint16_t, 256>          code_point{}; // of a byte
    std::array<int16_t, n_code_points> byte{};       // of a code point, -1 for none
};

constexpr bool stands_for_itself(int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Alphabet make_alphabet() {
    Alphabet alphabet;
    for (int i = 0; i < n_code_points; i++) {
        alphabet.byte[i] = -1;
    }
    int next = 0x100;
    for (int b = 0; b < 256; b++) {
        const int code_point      = stands_for_itself(b) ? b : next++;
        alphabet.code_point[b]    = static_cast<uint16_t>(code_point);
        alphabet.byte[code_point] = static_cast<int16_t>(b);
    }
    return alphabet;
}

constexpr Alphabet alphabet = make_alphabet();

} // namespace

std::string bytes_to_alphabet(std::string_view bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const char c : bytes) {
        const uint16_t code_point = alphabet.code_point[static_cast<uint8_t>(c)];
        if (code_point < 0x80) {
            text += static_cast<char>(code_point);
        } else {
            text += static_cast<char>(0xC0 | (code_point >> 6));
            text += static_cast<char>(0x80 | (code_point & 0x3F));
        }
    }
    return text;
}

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size());
    for (size_t i = 0; i < text.size(); i++) {
        unsigned code_point = static_cast<uint8_t>(text[i]);
        if (code_point >= 0x80) {
            // All other code points of the alphabet take two bytes, C2..C5 and a continuation.
            if (code_point < 0xC2 || code_point > 0xC5 || i + 1 == text.size()) {
                return std::nullopt;
            }
            const unsigned continuation = static_cast<uint8_t>(text[++i]);
            if ((continuation & 0xC0) != 0x80) {
                return std::nullopt;
            }
            code_point = (code_point & 0x1F) << 6 | (continuation & 0x3F);
        }
        if (code_point >= n_code_points || alphabet.byte[code_point] < 0) {
            return std::nullopt;
        }
        bytes += static_cast<char>(alphabet.byte[code_point]);
    }
    return bytes;
}

} // namespace penelope
