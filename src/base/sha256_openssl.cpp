#include "base/error.h"
#include "base/sha256.h"

#include <openssl/evp.h>

namespace penelope {

namespace {

void require(int status) {
    if (status != 1) {
        throw Error(ErrorKind::unsupported, "SHA-256: refused by the cryptographic library");
    }
}

} // namespace

struct Sha256::State {
    std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX *)> context{ EVP_MD_CTX_new(), EVP_MD_CTX_free };
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    require(state_->context ? EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::array<uint8_t, 32> Sha256::digest() {
    std::array<uint8_t, 32> bytes = {};
    require(EVP_DigestFinal_ex(state_->context.get(), bytes.data(), nullptr));
    return bytes;
}

} // namespace penelope
