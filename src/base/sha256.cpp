#include "base/sha256.h"

#include "base/error.h"
#include "base/mapped_file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace penelope {

namespace {

void require(int status) {
    if (status != 1) {
        throw Error(ErrorKind::unsupported, "SHA-256: refused by the cryptographic library");
    }
}

} // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    require(context_ != nullptr ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
    std::array<unsigned char, 32> digest = {};
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
    std::string text;
    for (const unsigned char byte : digest) {
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
