// SHA-256 (OpenSSL) of bytes, as lower-case hexadecimal.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

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
    std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st *)> context_;
};

std::string sha256_hex(std::string_view bytes);
std::string sha256_file(const std::string & path); // throws like MappedFile::open

} // namespace penelope
