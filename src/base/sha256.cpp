#include "base/sha256.h"

#include "base/mapped_file.h"

#include <algorithm>

namespace penelope {

std::string Sha256::hex() {
    std::string text;
    for (const uint8_t byte : digest()) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 hash;
    hash.add(bytes);
    return hash.hex();
}

std::string sha256_file(const std::string & path) {
    const MappedFile file = MappedFile::open(path);
    Sha256           hash;
    // In pieces that are given back, so that a large file does not fill the memory of the process.
    constexpr size_t piece = size_t(16) << 20;
    for (size_t at = 0; at < file.size(); at += piece) {
        const size_t n = std::min(piece, file.size() - at);
        hash.add({ reinterpret_cast<const char *>(file.data()) + at, n });
        file.drop(at, n);
    }
    return hash.hex();
}

} // namespace penelope
