// A backbone whose matrices have any of ggml's types computes tokens or is refused; no type ends the process.
#include <doctest/doctest.h>

#include "base/error.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "infer/session.h"
#include "support/temp_dir.h"
#include "train/random_backbone.h"

using namespace penelope;

namespace {

// Rows of 256, which are whole blocks of every type.
std::string wide_backbone(const test::TempDir & dir) {
    RandomBackbone shape = read_backbone_shape(
        dir.write("shape.toml", "name = \"wide\"\nlayers = 1\nwidth = 256\nheads = 4\nffn = 256\ncontext = 64\n"));
    write_random_backbone(shape, 1, dir.file("wide.gguf"));
    return dir.file("wide.gguf");
}

// The file with every tensor of two dimensions in another type, all zero, which is a value of every type.
std::string with_matrix_type(const test::TempDir & dir, const std::string & from, ggml_type type) {
    const GgufReader  file = GgufReader::open(from);
    const std::string path = dir.file("changed.gguf");
    GgufWriter        writer(path, true);
    writer.copy_keys(file);
    for (const GgufTensor & tensor : file.tensors()) {
        writer.add_tensor(tensor.name, tensor.n_dims == 2 ? type : tensor.type,
                          { tensor.ne, tensor.ne + tensor.n_dims });
    }
    writer.begin_data();
    for (const GgufTensor & tensor : file.tensors()) {
        const size_t size = tensor.n_dims == 2 ? ggml_row_size(type, tensor.ne[0]) * size_t(tensor.ne[1]) : tensor.size;
        const std::vector<uint8_t> zeros(size);
        writer.write_tensor(tensor.name, tensor.n_dims == 2 ? zeros.data() : tensor.data, size);
    }
    writer.finish();
    return path;
}

} // namespace

TEST_CASE("every type there is") {
    const test::TempDir dir;
    const std::string   base       = wide_backbone(dir);
    int                 n_computed = 0, n_refused = 0;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const ggml_type type = ggml_type(i);
        if (ggml_blck_size(type) <= 0) {
            continue; // a number no longer in use
        }
        CAPTURE(std::string(ggml_type_name(type)));
        const bool  is_number = type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float;
        LoadOptions load;
        load.base = with_matrix_type(dir, base, type);
        try {
            SessionOptions options;
            options.n_ctx = 32;
            Session         session(Engine::load(load), options);
            GenerateOptions generate;
            generate.n_predict = 2;
            session.generate({ 'a', 'b', 'c' }, generate);
            n_computed++;
            CHECK(is_number);
        } catch (const Error & error) {
            CHECK(!error.message().empty());
            n_refused++;
        }
    }
    MESSAGE(n_computed << " computed, " << n_refused << " refused");
    CHECK(n_computed >= 20);
    CHECK(n_refused >= 5);
}
