// What GgufWriter writes, ggml and GgufReader read back; what cannot be written leaves nothing behind.
#include <doctest/doctest.h>

#include "ggml-cpp.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <sys/resource.h>

#include <csignal>
#include <cstring>

using penelope::Error;
using penelope::ErrorKind;
using penelope::GgufReader;
using penelope::GgufWriter;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::n_entries;
using penelope::test::read_bytes;
using penelope::test::TempDir;

namespace fs = std::filesystem;

namespace {

const std::vector<float> numbers = { 1, -2, 3.5f, 0, 7, 1e30f };

} // namespace

TEST_CASE("keys and tensors come back as they were written") {
    const TempDir     dir;
    const std::string path = dir.file("out.gguf");
    const std::string q8(2 * 34 * 3, 'q'); // three rows of 64 elements
    {
        GgufWriter out(path, false);
        out.set_u32("u32", 3000000000u);
        out.set_i32("i32", -5);
        out.set_f32("f32", 0.125f);
        out.set_bool("bool", false);
        out.set_str("str", "first");
        out.set_str("str", "na\xC3\xAFve\n");
        out.set_str("gone", "x");
        out.remove("gone");
        out.remove("never there");
        out.set_str_array("words", { "a", "", "b c" });
        out.set_str_array("no words", {});
        out.set_i32_array("ints", { 1, -2 });
        out.set_f32_array("floats", { 0.5f });
        out.set_bool_array("flags", { true, false, true });
        out.add_tensor("f", GGML_TYPE_F32, { 3, 2 });
        out.add_tensor("q", GGML_TYPE_Q8_0, { 64, 3 });
        out.add_tensor("one", GGML_TYPE_F32, { 1 });
        out.begin_data();
        CHECK_FALSE(fs::exists(path));
        out.write_tensor("f", numbers.data(), numbers.size() * sizeof(float));
        out.write_tensor("q", q8.data(), q8.size());
        out.write_tensor("one", numbers.data(), sizeof(float));
        out.finish();
    }
    CHECK(n_entries(dir.path()) == 1);
    const GgufReader in = GgufReader::open(path);
    CHECK(gguf_get_n_kv(in.raw()) == 10);
    CHECK(in.get_u32("u32") == 3000000000u);
    CHECK(gguf_get_val_i32(in.raw(), gguf_find_key(in.raw(), "i32")) == -5);
    CHECK(in.get_f32("f32") == 0.125f);
    CHECK(in.find_bool("bool") == false);
    CHECK(in.get_str("str") == "na\xC3\xAFve\n");
    CHECK_FALSE(in.has("gone"));
    CHECK(in.get_str_array("words") == std::vector<std::string>{ "a", "", "b c" });
    CHECK(in.get_str_array("no words").empty());
    CHECK(in.get_i32_array("ints") == std::vector<int32_t>{ 1, -2 });
    CHECK(in.find_f32_array("floats") == std::vector<float>{ 0.5f });
    CHECK(gguf_get_arr_type(in.raw(), gguf_find_key(in.raw(), "flags")) == GGUF_TYPE_BOOL);
    CHECK(in.get_i32_array("flags") == std::vector<int32_t>{ 1, 0, 1 });
    CHECK(std::memcmp(in.get_tensor("f", { 3, 2 }).data, numbers.data(), 24) == 0);
    CHECK(in.get_tensor("q", { 64, 3 }).type == GGML_TYPE_Q8_0);
    CHECK(std::memcmp(in.get_tensor("q", { 64, 3 }).data, q8.data(), q8.size()) == 0);
    CHECK(std::memcmp(in.get_tensor("one", { 1 }).data, numbers.data(), 4) == 0);
    CHECK(in.file_size() % 32 == 0);
}

TEST_CASE("keys are copied whole, except an alignment the new file does not have") {
    const TempDir          dir;
    const gguf_context_ptr gguf(gguf_init_empty());
    gguf_set_val_u32(gguf.get(), "general.alignment", 64);
    gguf_set_val_u64(gguf.get(), "wide", 1ull << 40);
    gguf_set_val_str(gguf.get(), "name", "old");
    const char * words[] = { "x", "" };
    gguf_set_arr_str(gguf.get(), "words", words, 2);
    REQUIRE(gguf_write_to_file(gguf.get(), dir.file("in.gguf").c_str(), false));
    {
        GgufWriter out(dir.file("out.gguf"), false);
        out.copy_keys(GgufReader::open(dir.file("in.gguf")));
        out.set_str("name", "new");
        out.add_tensor("a", GGML_TYPE_F32, { 1 });
        out.add_tensor("b", GGML_TYPE_F32, { 1 });
        out.begin_data();
        out.write_tensor("a", numbers.data(), 4);
        out.write_tensor("b", numbers.data() + 1, 4);
        out.finish();
    }
    const GgufReader in = GgufReader::open(dir.file("out.gguf"));
    CHECK_FALSE(in.has("general.alignment"));
    CHECK(gguf_get_val_u64(in.raw(), gguf_find_key(in.raw(), "wide")) == 1ull << 40);
    CHECK(in.get_str("name") == "new");
    CHECK(in.get_str_array("words") == std::vector<std::string>{ "x", "" });
    CHECK(std::memcmp(in.get_tensor("b", { 1 }).data, numbers.data() + 1, 4) == 0);
}

TEST_CASE("a file of keys alone") {
    const TempDir dir;
    GgufWriter    out(dir.file("keys.gguf"), false);
    out.set_u32("k", 1);
    out.finish();
    CHECK(GgufReader::open(dir.file("keys.gguf")).get_u32("k") == 1);
}

TEST_CASE("an existing file needs force, and keeps its content until the end") {
    const TempDir     dir;
    const std::string path = dir.write("out.gguf", "old");
    CHECK(contains(error_of([&] { GgufWriter(path, false); }).hint, "--force"));
    {
        GgufWriter out(path, true);
        out.set_u32("k", 1);
        out.begin_data();
        CHECK(read_bytes(path) == "old");
    }
    CHECK(read_bytes(path) == "old");
    CHECK(n_entries(dir.path()) == 1);
    GgufWriter out(path, true);
    out.set_u32("k", 2);
    out.finish();
    CHECK(GgufReader::open(path).get_u32("k") == 2);
    CHECK(n_entries(dir.path()) == 1);
}

TEST_CASE("names and values ggml cannot hold are refused") {
    const TempDir dir;
    GgufWriter    out(dir.file("out.gguf"), false);
    CHECK_THROWS_AS(out.set_u32("", 1), Error);
    CHECK_THROWS_AS(out.set_u32(std::string_view("a\0b", 3), 1), Error);
    CHECK_THROWS_AS(out.set_str("k", std::string_view("a\0b", 3)), Error);
    CHECK_THROWS_AS(out.set_str_array("k", { std::string("\0", 1) }), Error);
    CHECK_THROWS_AS(out.set_u32("general.alignment", 64), Error);
    CHECK_THROWS_AS(out.set_str("general.alignment", "x"), Error);
    CHECK_THROWS_AS(out.add_tensor("", GGML_TYPE_F32, { 1 }), Error);
    CHECK_THROWS_AS(out.add_tensor(std::string(64, 'n'), GGML_TYPE_F32, { 1 }), Error);
    CHECK_THROWS_AS(out.add_tensor("t", GGML_TYPE_F32, {}), Error);
    CHECK_THROWS_AS(out.add_tensor("t", GGML_TYPE_F32, { 1, 1, 1, 1, 1 }), Error);
    CHECK_THROWS_AS(out.add_tensor("t", GGML_TYPE_F32, { 0 }), Error);
    CHECK_THROWS_AS(out.add_tensor("t", GGML_TYPE_F32, { INT64_MAX, 2 }), Error);
    CHECK_THROWS_AS(out.add_tensor("t", GGML_TYPE_F32, { INT64_MAX / 4 + 1 }), Error);
    CHECK_THROWS_AS(out.add_tensor("t", GGML_TYPE_Q8_0, { 33 }), Error);
    CHECK_THROWS_AS(out.add_tensor("t", GGML_TYPE_COUNT, { 32 }), Error);
    CHECK_THROWS_AS(out.add_tensor("t", static_cast<ggml_type>(4), { 32 }), Error);
    out.add_tensor("t", GGML_TYPE_F32, { 1 });
    CHECK(contains(error_of([&] { out.add_tensor("t", GGML_TYPE_F32, { 1 }); }).message(),
                   "tensor 't': announced twice"));
}

TEST_CASE("data out of order, of the wrong size or missing is refused and leaves no file") {
    const TempDir dir;
    {
        GgufWriter out(dir.file("out.gguf"), false);
        out.add_tensor("a", GGML_TYPE_F32, { 2 });
        out.add_tensor("b", GGML_TYPE_F32, { 2 });
        CHECK(
            contains(error_of([&] { out.write_tensor("a", numbers.data(), 8); }).message(), "data before the header"));
        out.begin_data();
        CHECK_THROWS_AS(out.begin_data(), Error);
        CHECK_THROWS_AS(out.set_u32("k", 1), Error);
        CHECK_THROWS_AS(out.remove("k"), Error);
        CHECK_THROWS_AS(out.add_tensor("c", GGML_TYPE_F32, { 2 }), Error);
        CHECK(contains(error_of([&] { out.write_tensor("b", numbers.data(), 8); }).message(),
                       "expected the data of 'a'"));
        CHECK(contains(error_of([&] { out.write_tensor("a", numbers.data(), 4); }).message(),
                       "4 bytes of data, expected 8"));
        out.write_tensor("a", numbers.data(), 8);
        CHECK(contains(error_of([&] { out.finish(); }).message(), "tensor 'b': announced but its data never came"));
        out.write_tensor("b", numbers.data(), 8);
        CHECK(contains(error_of([&] { out.write_tensor("b", numbers.data(), 8); }).message(),
                       "after the last announced tensor"));
    }
    CHECK(n_entries(dir.path()) == 0);
}

TEST_CASE("more data than the disk holds is refused before the first byte") {
    const TempDir dir;
    {
        GgufWriter out(dir.file("out.gguf"), false);
        out.add_tensor("huge", GGML_TYPE_F32, { int64_t(1) << 58 });
        const Error error = error_of([&] { out.begin_data(); });
        CHECK(error.kind == ErrorKind::io);
        CHECK(contains(error.message(), "out.gguf"));
        CHECK(contains(error.message(), "1.00 EiB"));
    }
    CHECK(n_entries(dir.path()) == 0);
}

TEST_CASE("a disk that fills up is an io error with bytes and path, and no file is left") {
    const TempDir dir;
    rlimit        before{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN); // the write then fails like one on a full disk
    rlimit     small   = before;
    small.rlim_cur     = 1 << 20;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const std::vector<float> data(size_t(1) << 19, 1.0f);
    std::string              message;
    {
        GgufWriter out(dir.file("out.gguf"), false);
        out.add_tensor("t", GGML_TYPE_F32, { int64_t(data.size()) });
        out.begin_data();
        const Error error = error_of([&] { out.write_tensor("t", data.data(), data.size() * sizeof(float)); });
        CHECK(error.kind == ErrorKind::io);
        message = error.message();
        CHECK_THROWS_AS(out.finish(), Error);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK(contains(message, "out.gguf"));
    CHECK(contains(message, "cannot write "));
    CHECK(contains(message, " bytes after 1048576"));
    CHECK(n_entries(dir.path()) == 0);
}
