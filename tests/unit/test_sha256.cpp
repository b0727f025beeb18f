// The published examples of SHA-256, whole and in pieces.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/sha256.h"
#include "support/temp_dir.h"

TEST_CASE("known digests") {
    CHECK(penelope::sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(penelope::sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(penelope::sha256_hex(std::string(1000000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("pieces hash like the whole") {
    penelope::Sha256 hash;
    hash.add("a");
    hash.add("");
    hash.add("bc");
    CHECK(hash.hex() == penelope::sha256_hex("abc"));
}

TEST_CASE("a file hashes like its bytes") {
    const penelope::test::TempDir dir;
    const std::string             large((size_t(33) << 20) + 5, 'x');
    CHECK(penelope::sha256_file(dir.write("abc", "abc")) == penelope::sha256_hex("abc"));
    CHECK(penelope::sha256_file(dir.write("empty", "")) == penelope::sha256_hex(""));
    CHECK(penelope::sha256_file(dir.write("large", large)) == penelope::sha256_hex(large));
    CHECK_THROWS_AS(penelope::sha256_file(dir.file("missing")), penelope::Error);
}
