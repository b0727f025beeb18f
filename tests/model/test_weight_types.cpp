// A backbone whose matrices have any of ggml's types computes a token or is refused; no type ends the process.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "base/error.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "infer/session.h"
#include "support/golden.h"

#include <cmath>

using namespace penelope;

namespace {

// The file with every tensor of two dimensions in another type; those whose rows are no whole blocks of it stay as they are.
std::string with_matrix_type(const test::GoldenCase & golden, const std::string & from, ggml_type type) {
    const GgufReader  file = GgufReader::open(from);
    const std::string path = golden.file(std::string(ggml_type_name(type)) + ".gguf");
    GgufWriter        writer(path, true);
    const auto        changed = [&](const GgufTensor & tensor) {
        return tensor.n_dims == 2 && tensor.ne[0] % ggml_blck_size(type) == 0 ? type : tensor.type;
    };
    writer.copy_keys(file);
    for (const GgufTensor & tensor : file.tensors()) {
        writer.add_tensor(tensor.name, changed(tensor), { tensor.ne, tensor.ne + tensor.n_dims });
    }
    writer.begin_data();
    for (const GgufTensor & tensor : file.tensors()) {
        if (changed(tensor) == tensor.type) {
            writer.write_tensor(tensor.name, tensor.data, tensor.size);
        } else {
            // Zeros are a value of every type.
            const std::vector<uint8_t> data(ggml_row_size(type, tensor.ne[0]) * size_t(tensor.ne[1]));
            writer.write_tensor(tensor.name, data.data(), data.size());
        }
    }
    writer.finish();
    return path;
}

} // namespace

TEST_CASE("every type there is, in backbone and sidecar") {
    const test::GoldenCase golden("last");
    int                    n_computed = 0, n_refused = 0;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const ggml_type type = ggml_type(i);
        if (ggml_blck_size(type) <= 0) {
            continue; // a number no longer in use
        }
        for (bool in_sidecar : { false, true }) {
            CAPTURE(std::string(ggml_type_name(type)));
            CAPTURE(in_sidecar);
            LoadOptions load;
            load.base    = in_sidecar ? golden.backbone() : with_matrix_type(golden, golden.backbone(), type);
            load.sidecar = in_sidecar ? with_matrix_type(golden, golden.sidecar(), type) : golden.sidecar();
            try {
                SessionOptions options;
                options.n_ctx = 128;
                Session         session(Engine::load(load), options);
                GenerateOptions generate;
                generate.n_predict = 2;
                session.generate(golden.prompt_ids(0), generate);
                n_computed++;
                CHECK(bool(ggml_get_type_traits(type)->to_float));
            } catch (const Error & error) {
                CHECK(!error.message().empty());
                n_refused++;
            }
        }
    }
    MESSAGE(n_computed << " computed, " << n_refused << " refused");
    CHECK(n_computed >= 10);
    CHECK(n_refused >= 10);
}
