#include "hub/checksum.h"

#include "base/error.h"

#include <openssl/evp.h>

namespace penelope {

namespace {

void require(int status) {
    if (status != 1) {
        throw Error(ErrorKind::unsupported, "checksum: refused by the cryptographic library");
    }
}

} // namespace

Checksum::Checksum(const std::string & oid, uint64_t size) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    const bool is_lfs = oid.size() == 64;
    require(context_ ? EVP_DigestInit_ex(context_.get(), is_lfs ? EVP_sha256() : EVP_sha1(), nullptr) : 0);
    if (!is_lfs) {
        add("blob " + std::to_string(size) + std::string(1, '\0'));
    }
}

Checksum::~Checksum() = default;

void Checksum::add(std::string_view bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Checksum::hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int  n = 0;
    require(EVP_DigestFinal_ex(context_.get(), digest, &n));
    std::string text;
    for (unsigned int i = 0; i < n; i++) {
        text += "0123456789abcdef"[digest[i] >> 4];
        text += "0123456789abcdef"[digest[i] & 15];
    }
    return text;
}

} // namespace penelope
