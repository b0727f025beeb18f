// A backbone damaged in any single byte of its header computes a token or gives an Error; it never ends the process.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/log.h"
#include "gguf/reader.h"
#include "infer/session.h"
#include "support/golden.h"

#include <fcntl.h>
#include <unistd.h>

using namespace penelope;

namespace {

// Writes one byte in place: rewriting the file for each case would take minutes.
void poke(int file, size_t offset, unsigned char value) {
    REQUIRE(pwrite(file, &value, 1, off_t(offset)) == 1);
}

void compute_a_token(const LoadOptions & load) {
    SessionOptions options;
    options.n_ctx = 16;
    Session         session(Engine::load(load), options);
    GenerateOptions generate;
    generate.n_predict = 1;
    session.generate({ 1, 2, 3 }, generate);
}

} // namespace

TEST_CASE("every byte of the header flipped") {
    const test::GoldenCase golden("full");
    const std::string      path   = golden.backbone();
    size_t                 header = SIZE_MAX;
    const GgufReader       reader = GgufReader::open(path);
    for (const GgufTensor & tensor : reader.tensors()) {
        header = std::min(header, tensor.offset);
    }
    log_set_level(LogLevel::error); // a file without a known pre-tokenizer is allowed, with a warning
    const int file = open(path.c_str(), O_RDWR);
    REQUIRE(file >= 0);
    LoadOptions options;
    options.base    = path;
    size_t n_loaded = 0, n_refused = 0;
    for (size_t offset = 0; offset < header; offset++) {
        unsigned char byte = 0;
        REQUIRE(pread(file, &byte, 1, off_t(offset)) == 1);
        poke(file, offset, static_cast<unsigned char>(byte ^ (offset % 2 ? 0x01 : 0x80)));
        try {
            compute_a_token(options);
            n_loaded++;
        } catch (const Error & error) {
            CHECK(!error.message().empty());
            n_refused++;
        }
        poke(file, offset, byte);
    }
    close(file);
    MESSAGE(header << " bytes: " << n_loaded << " computed, " << n_refused << " refused");
    CHECK(n_refused > header / 20);
    CHECK_NOTHROW(compute_a_token(options));
}
