// SHA-256 by the library in llama.cpp's tree, where OpenSSL is not (see src/base/sha256.h).
#include "base/sha256.h"

extern "C" {
#include "sha256/sha256.h"
}

namespace penelope {

struct Sha256::State {
    sha256_t hash{};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    sha256_init(&state_->hash);
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    sha256_update(&state_->hash, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size());
}

std::array<uint8_t, 32> Sha256::digest() {
    std::array<uint8_t, 32> bytes = {};
    sha256_final(&state_->hash, bytes.data());
    return bytes;
}

} // namespace penelope
