// Typed access to keys and tensors of a GGUF file that ggml itself wrote.
#include <doctest/doctest.h>

#include "ggml-cpp.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <cstring>
#include <fstream>
#include <iterator>

using penelope::Error;
using penelope::ErrorKind;
using penelope::GgufReader;
using penelope::GgufTensor;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::TempDir;

namespace {

const float matrix[6] = { 1, 2, 3, 4, 5, 6 };
const float vector[2] = { -1, -2 };

// A file with one key of every type and two tensors.
std::string write_sample(const TempDir & dir) {
    const gguf_context_ptr gguf(gguf_init_empty());
    gguf_set_val_u8(gguf.get(), "n.u8", 200);
    gguf_set_val_i8(gguf.get(), "n.i8", -3);
    gguf_set_val_u16(gguf.get(), "n.u16", 60000);
    gguf_set_val_i16(gguf.get(), "n.i16", 3000);
    gguf_set_val_u32(gguf.get(), "n.u32", 4294967295u);
    gguf_set_val_i32(gguf.get(), "n.i32", 7);
    gguf_set_val_u64(gguf.get(), "n.u64", 9);
    gguf_set_val_u64(gguf.get(), "n.u64.large", 18446744073709551615ull);
    gguf_set_val_i64(gguf.get(), "n.i64", 4294967296);
    gguf_set_val_f32(gguf.get(), "n.f32", 0.5f);
    gguf_set_val_f64(gguf.get(), "n.f64", 0.25);
    gguf_set_val_bool(gguf.get(), "n.bool", true);
    gguf_set_val_str(gguf.get(), "n.str", "caf\xC3\xA9");
    const char * words[] = { "a", "", "ccc" };
    gguf_set_arr_str(gguf.get(), "a.str", words, 3);
    const int16_t shorts[] = { -1, 0, 300 };
    gguf_set_arr_data(gguf.get(), "a.i16", GGUF_TYPE_INT16, shorts, 3);
    const uint32_t wide[] = { 1, 3000000000u };
    gguf_set_arr_data(gguf.get(), "a.u32", GGUF_TYPE_UINT32, wide, 2);
    const int8_t flags[] = { 1, 0, 1 };
    gguf_set_arr_data(gguf.get(), "a.bool", GGUF_TYPE_BOOL, flags, 3);
    gguf_set_arr_data(gguf.get(), "a.f32", GGUF_TYPE_FLOAT32, matrix, 6);
    gguf_set_arr_data(gguf.get(), "a.empty", GGUF_TYPE_INT32, nullptr, 0);

    const ggml_context_ptr ggml(ggml_init({ 1 << 16, nullptr, false }));
    ggml_tensor *          m = ggml_new_tensor_2d(ggml.get(), GGML_TYPE_F32, 3, 2);
    ggml_tensor *          v = ggml_new_tensor_1d(ggml.get(), GGML_TYPE_F32, 2);
    ggml_set_name(m, "m");
    ggml_set_name(v, "v");
    std::memcpy(m->data, matrix, sizeof(matrix));
    std::memcpy(v->data, vector, sizeof(vector));
    gguf_add_tensor(gguf.get(), m);
    gguf_add_tensor(gguf.get(), v);
    const std::string path = dir.file("sample.gguf");
    REQUIRE(gguf_write_to_file(gguf.get(), path.c_str(), false));
    return path;
}

} // namespace

TEST_CASE("every type of key is read") {
    const TempDir    dir;
    const GgufReader file = GgufReader::open(write_sample(dir));
    CHECK(file.get_u32("n.u8") == 200);
    CHECK(file.get_u32("n.u16") == 60000);
    CHECK(file.get_u32("n.i16") == 3000);
    CHECK(file.get_u32("n.u32") == 4294967295u);
    CHECK(file.get_u32("n.i32") == 7);
    CHECK(file.get_u32("n.u64") == 9);
    CHECK(file.get_f32("n.f32") == 0.5f);
    CHECK(file.find_bool("n.bool") == true);
    CHECK(file.get_str("n.str") == "caf\xC3\xA9");
    CHECK(file.get_str_array("a.str") == std::vector<std::string>{ "a", "", "ccc" });
    CHECK(file.get_i32_array("a.i16") == std::vector<int32_t>{ -1, 0, 300 });
    CHECK(file.get_i32_array("a.bool") == std::vector<int32_t>{ 1, 0, 1 });
    CHECK(file.get_i32_array("a.empty").empty());
    CHECK(file.find_f32_array("a.f32") == std::vector<float>(matrix, matrix + 6));
}

TEST_CASE("a missing key is nothing to find_* and an error that names it to get_*") {
    const TempDir     dir;
    const std::string path = write_sample(dir);
    const GgufReader  file = GgufReader::open(path);
    CHECK_FALSE(file.has("none"));
    CHECK_FALSE(file.find_u32("none"));
    CHECK_FALSE(file.find_f32("none"));
    CHECK_FALSE(file.find_bool("none"));
    CHECK_FALSE(file.find_str("none"));
    CHECK_FALSE(file.find_i32_array("none"));
    CHECK_FALSE(file.find_f32_array("none"));
    CHECK(file.find_u32("n.u8") == 200u);
    const Error error = error_of([&] { file.get_u32("none"); });
    CHECK(error.kind == ErrorKind::format);
    CHECK(error.message() == "'" + path + "': key 'none': missing, expected an integer of 32 bits without sign");
}

TEST_CASE("another type is an error that says what was found") {
    const TempDir    dir;
    const GgufReader file  = GgufReader::open(write_sample(dir));
    const auto       found = [](const Error & error, const char * text) { return contains(error.message(), text); };
    CHECK(found(error_of([&] { file.get_u32("n.f32"); }),
                "key 'n.f32': expected an integer of 32 bits without sign, found f32"));
    CHECK(found(error_of([&] { file.get_u32("n.str"); }), "found str"));
    CHECK(found(error_of([&] { file.get_u32("a.i16"); }), "found an array of i16"));
    CHECK(found(error_of([&] { file.get_u32("n.bool"); }), "found bool"));
    CHECK(found(error_of([&] { file.get_u32("n.i8"); }), "found -3"));
    CHECK(found(error_of([&] { file.get_u32("n.i64"); }), "found 4294967296"));
    CHECK_THROWS_AS(file.get_u32("n.u64.large"), Error);
    CHECK(found(error_of([&] { file.get_f32("n.f64"); }), "expected f32, found f64"));
    CHECK(found(error_of([&] { file.get_f32("n.u32"); }), "expected f32, found u32"));
    CHECK(found(error_of([&] { file.find_bool("n.u8"); }), "expected bool, found u8"));
    CHECK(found(error_of([&] { file.get_str("a.str"); }), "expected a string, found an array of str"));
    CHECK(found(error_of([&] { file.get_str_array("n.str"); }), "expected an array of strings, found str"));
    CHECK(found(error_of([&] { file.get_str_array("a.f32"); }), "found an array of f32"));
    CHECK(found(error_of([&] { file.get_i32_array("a.str"); }), "found an array of str"));
    CHECK(found(error_of([&] { file.get_i32_array("a.f32"); }), "found an array of f32"));
    CHECK(found(error_of([&] { file.get_i32_array("a.u32"); }), "found 3000000000 at index 1"));
    CHECK(found(error_of([&] { file.find_f32_array("a.i16"); }), "expected an array of f32, found an array of i16"));
    CHECK_THROWS_AS(file.find_u32("n.str"), Error);
    CHECK_THROWS_AS(file.find_f32_array("n.f32"), Error);
}

TEST_CASE("tensors are found, in file order, with their data") {
    const TempDir    dir;
    const GgufReader file = GgufReader::open(write_sample(dir));
    REQUIRE(file.tensors().size() == 2);
    CHECK(file.tensors()[0].name == "m");
    CHECK(file.tensors()[1].name == "v");
    const GgufTensor & m = file.get_tensor("m", { 3, 2 });
    CHECK(m.type == GGML_TYPE_F32);
    CHECK(m.n_dims == 2);
    CHECK(m.n_elements() == 6);
    CHECK(m.size == sizeof(matrix));
    CHECK(std::memcmp(m.data, matrix, sizeof(matrix)) == 0);
    CHECK(m.offset % 32 == 0);
    CHECK(file.find_tensor("v") == &file.tensors()[1]);
    CHECK(file.find_tensor("w") == nullptr);
    CHECK(&file.get_tensor("v", { 2, 1, 1, 1 }) == file.find_tensor("v"));
    file.release_pages(m);
    CHECK(std::memcmp(m.data, matrix, sizeof(matrix)) == 0);
}

TEST_CASE("a missing tensor or another shape is an error with both shapes") {
    const TempDir    dir;
    const GgufReader file = GgufReader::open(write_sample(dir));
    CHECK(contains(error_of([&] {
                       file.get_tensor("w", { 3, 2 });
                   }).message(),
                   "tensor 'w': missing, expected shape [3, 2]"));
    CHECK(contains(error_of([&] {
                       file.get_tensor("m", { 2, 3 });
                   }).message(),
                   "tensor 'm': expected shape [2, 3], found [3, 2]"));
    CHECK_THROWS_AS(file.get_tensor("m", { 3 }), Error);
    CHECK_THROWS_AS(file.get_tensor("m", { 3, 2, 1, 1, 1 }), Error);
}

TEST_CASE("a reader can be moved") {
    const TempDir dir;
    GgufReader    first  = GgufReader::open(write_sample(dir));
    GgufReader    second = std::move(first);
    CHECK(second.find_tensor("v")->ne[0] == 2);
    CHECK(second.get_u32("n.i32") == 7);
}

TEST_CASE("a file in memory is read in place and never written to") {
    const TempDir           dir;
    std::ifstream           file(write_sample(dir), std::ios::binary);
    const std::vector<char> bytes{ std::istreambuf_iterator<char>(file), {} };
    const auto *            data   = reinterpret_cast<const uint8_t *>(bytes.data());
    const GgufReader        reader = GgufReader::open("a name", { data, bytes.size() });
    CHECK(reader.path() == "a name");
    CHECK(reader.get_u32("n.i32") == 7);
    const GgufTensor & tensor = reader.tensors().front();
    CHECK(tensor.data == data + tensor.offset);
    const std::vector<char> before = bytes;
    reader.release_pages(tensor); // of a map: they would come back from the file
    CHECK(bytes == before);
    CHECK(contains(error_of([&] {
                       GgufReader::open("a name", { data + 4, bytes.size() - 4 });
                   }).what(),
                   "'a name': its address in memory is not a multiple of 8"));
}

TEST_CASE("what is no GGUF file is refused with a reason") {
    const TempDir dir;
    CHECK(error_of([&] { GgufReader::open(dir.file("missing.gguf")); }).kind == ErrorKind::not_found);
    CHECK(contains(error_of([&] { GgufReader::open(dir.path().string()); }).message(), "is a directory"));
    CHECK(contains(error_of([&] { GgufReader::open(dir.write("empty", "")); }).message(), "is empty"));
    CHECK(contains(error_of([&] { GgufReader::open(dir.write("text", "hello, world")); }).message(),
                   "is not a GGUF file"));
    CHECK(contains(error_of([&] { GgufReader::open("/dev/null"); }).message(), "is not a regular file"));
}

TEST_CASE("keys under an architecture and under an index") {
    namespace keys = penelope::keys;
    CHECK(keys::arch("llama", keys::head_count_kv) == "llama.attention.head_count_kv");
    CHECK(keys::general_base_model(0, "name") == "general.base_model.0.name");
    CHECK(keys::general_dataset(2, "repo_url") == "general.dataset.2.repo_url");
    CHECK(keys::tokenizer_named_chat_template("tool_use") == "tokenizer.chat_template.tool_use");
}

TEST_CASE("files that are not GGUF are named for what they are") {
    const TempDir dir;
    const auto    error_for = [&](const std::string & content) {
        return error_of([&] { GgufReader::open(dir.write("file", content)); });
    };
    const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 2147483648\n";
    CHECK(contains(error_for(pointer).message(), "is a Git LFS pointer to a file of 2.00 GiB"));
    CHECK(contains(error_for(pointer).hint, "git lfs pull"));
    const std::string page = " \n<!DOCTYPE html><html><body>404</body></html>";
    CHECK(contains(error_for(page).message(), "is a web page"));
    CHECK(contains(error_for(page).hint, "resolve/main"));
    const std::string tensors = std::string("\x02\0\0\0\0\0\0\0", 8) + "{}" + "....";
    CHECK(contains(error_for(tensors).message(), "is a safetensors file"));
    CHECK(contains(error_for(tensors).hint, "penelope convert DIR"));
    CHECK(contains(error_for("{\"error\": \"Repository not found\"}").message(), "Repository not found"));
    CHECK(contains(error_for("PK\x03\x04 and so on").message(), "zip archive or a PyTorch checkpoint"));
    CHECK(contains(error_for("tjgg and so on").message(), "GGML file of 2023"));
    CHECK(contains(error_for(std::string(5000, '\0')).message(), "begins with zeros"));
    CHECK(contains(error_for("").hint, "did not finish"));
    CHECK(contains(error_for("GGUF\x03").hint, "cut short"));
}
