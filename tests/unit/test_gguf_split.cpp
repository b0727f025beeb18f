// Models split over several GGUF files, made here as llama-gguf-split makes them: all keys in the first part, split.no,
// split.count and split.tensors.count in every one.
#include <doctest/doctest.h>

#include "ggml-cpp.h"
#include "gguf/reader.h"
#include "gguf/split_name.h"
#include "gguf/writer.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <cstring>
#include <filesystem>

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::TempDir;

namespace {

struct Part {
    int                      number, count, n_tensors; // number from 1
    std::vector<std::string> tensors;                  // 64 numbers each, all equal to the length of the name
};

std::string write_part(const std::string & path, const Part & part) {
    const gguf_context_ptr gguf(gguf_init_empty());
    if (part.number == 1) {
        gguf_set_val_str(gguf.get(), "general.name", "whole");
    }
    gguf_set_val_u16(gguf.get(), "split.no", uint16_t(part.number - 1));
    gguf_set_val_u16(gguf.get(), "split.count", uint16_t(part.count));
    gguf_set_val_i32(gguf.get(), "split.tensors.count", part.n_tensors);
    const ggml_context_ptr ggml(ggml_init({ 1 << 16, nullptr, false }));
    for (const std::string & name : part.tensors) {
        ggml_tensor * tensor = ggml_new_tensor_1d(ggml.get(), GGML_TYPE_F32, 64);
        ggml_set_name(tensor, name.c_str());
        std::fill_n(static_cast<float *>(tensor->data), 64, float(name.size()));
        gguf_add_tensor(gguf.get(), tensor);
    }
    REQUIRE(gguf_write_to_file(gguf.get(), path.c_str(), false));
    return path;
}

// Three parts with the tensors a, bb | ccc | dddd. Returns the path of the first.
std::string write_three(const TempDir & dir) {
    const std::string prefix = dir.file("m");
    write_part(split_path(prefix, 2, 3), { 2, 3, 4, { "ccc" } });
    write_part(split_path(prefix, 3, 3), { 3, 3, 4, { "dddd" } });
    return write_part(split_path(prefix, 1, 3), { 1, 3, 4, { "a", "bb" } });
}

} // namespace

TEST_CASE("names of parts") {
    const auto name = parse_split_name("dir/m-00002-of-00013.gguf");
    REQUIRE(name);
    CHECK(name->prefix == "dir/m");
    CHECK(name->number == 2);
    CHECK(name->count == 13);
    CHECK(split_path("dir/m", 2, 13) == "dir/m-00002-of-00013.gguf");
    for (const char * other : { "m.gguf", "m-0002-of-00013.gguf", "-00001-of-00002.gguf", "m-00000-of-00002.gguf",
                                "m-00003-of-00002.gguf", "m-00001-of-0000x.gguf", "m-00001-of-00002.bin", "" }) {
        CHECK_MESSAGE(!parse_split_name(other), other);
    }
}

TEST_CASE("all parts are read as one model") {
    const TempDir    dir;
    const GgufReader file = GgufReader::open(write_three(dir));
    CHECK(file.n_files() == 3);
    CHECK(file.get_str("general.name") == "whole");
    REQUIRE(file.tensors().size() == 4);
    size_t size = 0;
    for (int i = 1; i <= 3; i++) {
        size += std::filesystem::file_size(split_path(dir.file("m"), i, 3));
    }
    CHECK(file.file_size() == size);
    for (const char * name : { "a", "bb", "ccc", "dddd" }) {
        const GgufTensor & tensor = file.get_tensor(name, { 64 });
        CHECK(static_cast<const float *>(tensor.data)[63] == float(std::strlen(name)));
        file.release_pages(tensor);
        CHECK(static_cast<const float *>(tensor.data)[0] == float(std::strlen(name)));
    }
}

TEST_CASE("the first part may have no tensors") {
    const TempDir dir;
    write_part(split_path(dir.file("m"), 2, 2), { 2, 2, 1, { "a" } });
    const GgufReader file = GgufReader::open(write_part(split_path(dir.file("m"), 1, 2), { 1, 2, 1, {} }));
    CHECK(file.find_tensor("a") != nullptr);
}

TEST_CASE("keys of the split are not copied") {
    const TempDir dir;
    GgufWriter    writer(dir.file("whole.gguf"), false);
    writer.copy_keys(GgufReader::open(write_three(dir)));
    writer.begin_data();
    writer.finish();
    const GgufReader file = GgufReader::open(dir.file("whole.gguf"));
    CHECK(file.has("general.name"));
    CHECK(!file.has("split.no"));
    CHECK(!file.has("split.count"));
    CHECK(!file.has("split.tensors.count"));
}

TEST_CASE("a part that is not the first names the first") {
    const TempDir     dir;
    const std::string first = write_three(dir);
    const Error       error = error_of([&] { GgufReader::open(split_path(dir.file("m"), 3, 3)); });
    CHECK(contains(error.message(), "is part 3 of 3 of a model"));
    CHECK(contains(error.hint, first));
    CHECK(GgufReader::open_one_file(split_path(dir.file("m"), 3, 3)).tensors().size() == 1);
}

TEST_CASE("parts that do not belong together are refused by name") {
    const TempDir     dir;
    const std::string first = write_three(dir), second = split_path(dir.file("m"), 2, 3);
    const auto        message = [&] { return error_of([&] { GgufReader::open(first); }).message(); };

    SUBCASE("missing") {
        std::filesystem::remove(second);
        const Error error = error_of([&] { GgufReader::open(first); });
        CHECK(error.kind == ErrorKind::not_found);
        CHECK(contains(error.message(), second));
        CHECK(contains(error.message(), "part 2 of 3"));
    }
    SUBCASE("the same part twice") {
        std::filesystem::copy_file(split_path(dir.file("m"), 3, 3), second,
                                   std::filesystem::copy_options::overwrite_existing);
        CHECK(contains(message(), second));
        CHECK(contains(message(), "expected part 2 of 3, found part 3 of 3"));
    }
    SUBCASE("of a model with another number of tensors") {
        write_part(second, { 2, 3, 5, { "ccc" } });
        CHECK(contains(message(), second));
        CHECK(contains(message(), "is a part of another model"));
    }
    SUBCASE("of a model with another number of parts") {
        write_part(second, { 2, 4, 4, { "ccc" } });
        CHECK(contains(message(), "expected part 2 of 3, found part 2 of 4"));
    }
    SUBCASE("a tensor twice") {
        write_part(second, { 2, 3, 4, { "a" } });
        CHECK(contains(message(), second));
        CHECK(contains(message(), "'a' is already in"));
    }
    SUBCASE("too few tensors") {
        write_part(second, { 2, 3, 4, {} });
        CHECK(contains(message(), "expected 4 tensors in 3 parts, found 3"));
    }
    SUBCASE("a whole model") {
        write_part(second, { 1, 1, 4, { "ccc" } });
        CHECK(contains(message(), "found a model in one file"));
    }
    SUBCASE("cut short") {
        std::filesystem::resize_file(second, 100);
        CHECK(contains(message(), second));
    }
    SUBCASE("under another name") {
        std::filesystem::rename(first, dir.file("m.gguf"));
        const Error error = error_of([&] { GgufReader::open(dir.file("m.gguf")); });
        CHECK(contains(error.message(), "is not named so"));
        CHECK(contains(error.hint, "-00001-of-00003.gguf"));
    }
}
