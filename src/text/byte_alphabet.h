// The alphabet of byte-level BPE: every byte as one printable code point, so that vocabularies are plain text.
// Printable Latin-1 stands for itself, the other 68 bytes are U+0100, U+0101, ... in order (space is U+0120, newline
// U+010A).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penelope {

std::string bytes_to_alphabet(std::string_view bytes);

// The bytes a token of the vocabulary stands for; nothing if it holds a character outside the alphabet.
std::optional<std::string> alphabet_to_bytes(std::string_view text);

} // namespace penelope
