// Checks a file against the identity the hub gives it: SHA-256 for a file in LFS, else git's SHA-1 of the blob.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace penelope {

class Checksum {
  public:
    // oid: 64 or 40 hexadecimal digits. size: of the whole file.
    Checksum(const std::string & oid, uint64_t size);
    ~Checksum();

    void        add(std::string_view bytes);
    std::string hex(); // call once, after the last add()

  private:
    std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st *)> context_;
};

} // namespace penelope
