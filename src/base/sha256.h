// SHA-256 of bytes, as lower-case hexadecimal. A library does it: OpenSSL (sha256_openssl.cpp), in browsers the one
// that comes with llama.cpp (web/src/sha256.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace penelope {

// Hashes data given in pieces.
class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256 &)             = delete;
    Sha256 & operator=(const Sha256 &) = delete;

    void        add(std::string_view bytes);
    std::string hex(); // 64 characters; call once, after the last add()

  private:
    std::array<uint8_t, 32> digest();

    struct State;
    std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);
std::string sha256_file(const std::string & path); // throws like MappedFile::open

} // namespace penelope
