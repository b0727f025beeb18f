// Damaged GGUF files: whatever a byte of the header says, opening the file ends in an Error or in a reader whose every
// key and tensor can be read, without large allocations. Built with the sanitizers this also proves that no read leaves
// the map.
#include <doctest/doctest.h>

#include "ggml-cpp.h"
#include "gguf/reader.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>

using penelope::Error;
using penelope::ErrorKind;
using penelope::GgufReader;
using penelope::GgufTensor;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::read_bytes;
using penelope::test::TempDir;

// The largest single allocation since it was last set to zero, by ggml or by us. Inlined, new over malloc and delete
// over free look like mismatched pairs to the compiler.
static std::atomic<size_t> largest_allocation{ 0 };

[[gnu::noinline]] void * operator new(size_t size) {
    size_t seen = largest_allocation.load();
    while (size > seen && !largest_allocation.compare_exchange_weak(seen, size)) {
    }
    if (void * memory = std::malloc(size)) {
        return memory;
    }
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void * memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void * memory, size_t) noexcept {
    std::free(memory);
}

namespace {

// Bytes of a GGUF file, written by hand.
struct Bytes {
    std::string text;

    template <typename T> Bytes & put(T value) {
        text.append(reinterpret_cast<const char *>(&value), sizeof(value));
        return *this;
    }
    Bytes & u32(uint32_t value) { return put(value); }
    Bytes & u64(uint64_t value) { return put(value); }
    Bytes & str(const std::string & value) {
        u64(value.size());
        text += value;
        return *this;
    }
    Bytes & start(uint64_t n_tensors, uint64_t n_kv, uint32_t version = 3) {
        text = "GGUF";
        return u32(version).u64(n_tensors).u64(n_kv);
    }
    Bytes & tensor(const std::string & name, const std::vector<uint64_t> & ne, uint32_t type, uint64_t offset) {
        str(name).u32(uint32_t(ne.size()));
        for (const uint64_t n : ne) {
            u64(n);
        }
        return u32(type).u64(offset);
    }
    Bytes & data(size_t size) {
        text.resize((text.size() + 31) / 32 * 32);
        text.append(size, 'd');
        return *this;
    }
};

// A valid file with every kind of value, small enough to damage byte by byte. `header_size` excludes the tensor data.
std::string sample(const TempDir & dir, size_t & header_size) {
    const gguf_context_ptr gguf(gguf_init_empty());
    gguf_set_val_str(gguf.get(), "general.architecture", "llama");
    gguf_set_val_u32(gguf.get(), "general.alignment", 32);
    gguf_set_val_u32(gguf.get(), "llama.block_count", 2);
    gguf_set_val_f32(gguf.get(), "llama.eps", 1e-5f);
    gguf_set_val_bool(gguf.get(), "flag", true);
    gguf_set_val_u8(gguf.get(), "u8", 1);
    gguf_set_val_i16(gguf.get(), "i16", -1);
    gguf_set_val_i64(gguf.get(), "i64", 5);
    gguf_set_val_f64(gguf.get(), "f64", 0.5);
    const char * words[] = { "hello", "", "w" };
    gguf_set_arr_str(gguf.get(), "tokens", words, 3);
    const int32_t numbers[] = { 1, 2, 3 };
    gguf_set_arr_data(gguf.get(), "types", GGUF_TYPE_INT32, numbers, 3);
    const int8_t flags[] = { 1, 0 };
    gguf_set_arr_data(gguf.get(), "flags", GGUF_TYPE_BOOL, flags, 2);
    const ggml_context_ptr ggml(ggml_init({ 1 << 16, nullptr, false }));
    ggml_tensor *          a = ggml_new_tensor_2d(ggml.get(), GGML_TYPE_F32, 5, 3);
    ggml_tensor *          b = ggml_new_tensor_2d(ggml.get(), GGML_TYPE_Q8_0, 64, 2);
    ggml_tensor *          c = ggml_new_tensor_1d(ggml.get(), GGML_TYPE_F16, 7);
    int                    i = 0;
    for (ggml_tensor * t : { a, b, c }) {
        ggml_format_name(t, "blk.%d.weight", i++);
        std::memset(t->data, 'd', ggml_nbytes(t));
        gguf_add_tensor(gguf.get(), t);
    }
    header_size            = gguf_get_meta_size(gguf.get());
    const std::string path = dir.file("sample.gguf");
    REQUIRE(gguf_write_to_file(gguf.get(), path.c_str(), false));
    return read_bytes(path);
}

template <typename F> void try_it(F && read) {
    try {
        read();
    } catch (const Error &) {
    }
}

// Opens the file; when that works, reads everything in it in every way. True when it opened.
bool survives(const std::string & path) {
    try {
        const GgufReader file = GgufReader::open(path);
        for (int64_t i = 0; i < gguf_get_n_kv(file.raw()); ++i) {
            const std::string key = gguf_get_key(file.raw(), i);
            try_it([&] { file.get_u32(key); });
            try_it([&] { file.get_f32(key); });
            try_it([&] { file.find_bool(key); });
            try_it([&] { file.get_str(key); });
            try_it([&] { file.get_str_array(key); });
            try_it([&] { file.get_i32_array(key); });
            try_it([&] { file.find_f32_array(key); });
        }
        unsigned sum = 0;
        for (const GgufTensor & tensor : file.tensors()) {
            const auto * bytes = static_cast<const unsigned char *>(tensor.data);
            CHECK(tensor.offset + tensor.size <= file.file_size());
            for (size_t i = 0; i < tensor.size; ++i) {
                sum += bytes[i];
            }
            CHECK(tensor.n_elements() > 0);
        }
        return file.tensors().empty() || sum > 0;
    } catch (const Error & error) {
        CHECK(contains(error.message(), path));
        return false;
    }
}

Error open_error(const TempDir & dir, const Bytes & bytes) {
    const std::string path = dir.write("bad.gguf", bytes.text);
    largest_allocation     = 0;
    const Error error      = error_of([&] { GgufReader::open(path); });
    CHECK(largest_allocation.load() < (1 << 20));
    CHECK(contains(error.message(), path));
    return error;
}

std::string open_message(const TempDir & dir, const Bytes & bytes) {
    return open_error(dir, bytes).message();
}

} // namespace

TEST_CASE("no byte of the header can do harm") {
    const TempDir     dir;
    size_t            header_size = 0;
    const std::string bytes       = sample(dir, header_size);
    const std::string path        = dir.write("damaged.gguf", bytes);
    REQUIRE(survives(path));
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const auto   set_byte = [&](size_t i, int value) { file.seekp(std::streamoff(i)).put(char(value)).flush(); };
    size_t       n_opened = 0;
    size_t       n_tried  = 0;
    for (size_t i = 0; i < header_size; ++i) {
        const int old = bytes[i];
        for (const int value : { 0x00, 0xFF, 0x7F, 0x80, old ^ 1, old ^ 0x80, old ^ 0x20, old + 1, old - 1 }) {
            set_byte(i, value);
            largest_allocation = 0;
            n_opened += survives(path);
            n_tried += 1;
            INFO("byte ", i, " from ", old, " to ", value);
            CHECK(largest_allocation.load() < (1 << 20));
        }
        set_byte(i, old);
    }
    REQUIRE(file.good());
    CHECK(read_bytes(path) == bytes);
    // Damage inside names and values cannot be noticed, damage to lengths, types and offsets must be.
    CHECK(n_opened > n_tried / 10);
    CHECK(n_opened < n_tried / 2);
}

TEST_CASE("a file cut off anywhere before the end of its data is refused") {
    const TempDir     dir;
    size_t            header_size = 0;
    const std::string path        = dir.write("cut.gguf", sample(dir, header_size));
    size_t            data_end    = 0;
    {
        const GgufReader whole = GgufReader::open(path);
        data_end               = whole.tensors().back().offset + whole.tensors().back().size;
        REQUIRE(data_end < whole.file_size()); // ggml pads behind the last tensor
    }
    std::filesystem::resize_file(path, data_end);
    CHECK(survives(path));
    while (data_end-- > 0) {
        std::filesystem::resize_file(path, data_end);
        largest_allocation = 0;
        INFO("cut at ", data_end);
        CHECK_FALSE(survives(path));
        CHECK(largest_allocation.load() < (1 << 20));
    }
}

TEST_CASE("counts and lengths beyond the file are refused without allocating") {
    const TempDir dir;
    for (const uint64_t absurd :
         { uint64_t(1) << 20, uint64_t(1) << 40, uint64_t(INT64_MAX), UINT64_MAX, UINT64_MAX / 8 + 2 }) {
        CHECK(contains(open_message(dir, Bytes().start(absurd, 0)), "tensors, at most"));
        CHECK(contains(open_message(dir, Bytes().start(0, absurd)), "keys, at most"));
        CHECK(contains(open_message(dir, Bytes().start(0, 1).u64(absurd)), "key number 0: a string of"));
        CHECK(contains(open_message(dir, Bytes().start(0, 1).str("k").u32(GGUF_TYPE_STRING).u64(absurd)),
                       "key 'k': a string of"));
        for (const uint32_t type :
             { GGUF_TYPE_UINT8, GGUF_TYPE_INT16, GGUF_TYPE_FLOAT32, GGUF_TYPE_STRING, GGUF_TYPE_FLOAT64 }) {
            CHECK(contains(
                open_message(dir, Bytes().start(0, 1).str("k").u32(GGUF_TYPE_ARRAY).u32(type).u64(absurd).u64(0)),
                "key 'k': an array of"));
        }
        CHECK(contains(open_message(dir, Bytes().start(1, 0).u64(absurd)), "name of tensor number 0"));
        CHECK(contains(open_message(dir, Bytes().start(1, 0).tensor("t", { 1, absurd }, GGML_TYPE_F32, 0).data(64)),
                       "tensor 't'"));
        CHECK(contains(open_message(dir, Bytes().start(1, 0).tensor("t", { 1 }, GGML_TYPE_F32, absurd).data(64)),
                       "tensor 't': data at offset"));
    }
}

TEST_CASE("more keys and tensors than any model has are refused before ggml compares each with all") {
    const TempDir dir;
    CHECK(contains(open_message(dir, Bytes().start(0, 4097)), "4097 keys, at most 4096"));
    CHECK(contains(open_message(dir, Bytes().start(16385, 0)), "16385 tensors, at most 16384"));
    CHECK(contains(open_message(dir, Bytes().start(16384, 4096)), "key number 0"));
}

TEST_CASE("an array of strings whose zeros look like empty strings stays within the header limit") {
    const TempDir dir;
    Bytes         bytes;
    bytes.start(1, 1).str("k").u32(GGUF_TYPE_ARRAY).u32(GGUF_TYPE_STRING).u64(1 << 20);
    bytes.text.resize(bytes.text.size() + 4096, '\0');
    CHECK(contains(open_message(dir, bytes), "an array of 1048576 elements does not fit"));
}

TEST_CASE("shapes that overflow or do not fit the type are refused") {
    const TempDir dir;
    const auto    shape = [&](const std::vector<uint64_t> & ne, uint32_t type) {
        return open_message(dir, Bytes().start(1, 0).tensor("t", ne, type, 0).data(256));
    };
    CHECK(contains(shape({ 1u << 31, 1u << 31, 4 }, GGML_TYPE_F32), "is larger than the file"));
    CHECK(contains(shape({ uint64_t(1) << 32, uint64_t(1) << 32 }, GGML_TYPE_F32), "is larger than the file"));
    CHECK(contains(shape({ 65536, 65536, 65536, 65536 }, GGML_TYPE_F32), "is larger than the file"));
    CHECK(contains(shape({ 32, uint64_t(1) << 58 }, GGML_TYPE_Q8_0), "is larger than the file"));
    CHECK(contains(shape({ UINT64_MAX }, GGML_TYPE_F32), "dimension 0 is -1"));
    CHECK(contains(shape({ 0 }, GGML_TYPE_F32), "dimension 0 is 0"));
    CHECK(contains(shape({ 4, 0 }, GGML_TYPE_F32), "dimension 1 is 0"));
    CHECK(contains(shape({ 33 }, GGML_TYPE_Q8_0), "needs a multiple of 32"));
    CHECK(contains(shape({ 1, 1, 1, 1, 1 }, GGML_TYPE_F32), "5 dimensions"));
    CHECK(contains(shape({ 4 }, GGML_TYPE_COUNT), "unknown tensor type"));
    CHECK(contains(shape({ 4 }, 4), "unknown tensor type 4")); // a type ggml has dropped
    CHECK(contains(shape({ 4 }, 0xFFFFFFFFu), "unknown tensor type -1"));
    CHECK(contains(shape({ 65 }, GGML_TYPE_F32), "tensor data ends at byte"));
}

TEST_CASE("names that ggml would cut, take twice or abort on are refused") {
    const TempDir dir;
    const auto    bool_key = [](Bytes & bytes, const std::string & key) -> Bytes & {
        return bytes.str(key).u32(GGUF_TYPE_BOOL).put(int8_t(1));
    };
    Bytes empty, twice, nul;
    CHECK(contains(open_message(dir, bool_key(empty.start(0, 1), "")), "key number 0 is empty"));
    CHECK(contains(open_message(dir, bool_key(bool_key(twice.start(0, 2), "k"), "k")), "key 'k': appears twice"));
    CHECK(contains(open_message(dir, bool_key(nul.start(0, 1), std::string("a\0b", 3))), "contains a NUL byte"));
    CHECK(contains(open_message(dir, Bytes().start(0, 1).str("k").u32(GGUF_TYPE_STRING).str(std::string("\0", 1))),
                   "key 'k': contains a NUL"));
    CHECK(contains(open_message(dir, Bytes().start(1, 0).tensor(std::string(64, 'n'), { 1 }, 0, 0).data(4)),
                   "64 bytes are too long"));
    CHECK(contains(open_message(dir, Bytes().start(1, 0).tensor("", { 1 }, 0, 0).data(4)), "has no name"));
    CHECK(contains(open_message(dir, Bytes().start(2, 0).tensor("t", { 1 }, 0, 0).tensor("t", { 1 }, 0, 32).data(64)),
                   "tensor 't': appears twice"));
}

TEST_CASE("versions, types and alignment") {
    const TempDir dir;
    CHECK(open_error(dir, Bytes().start(0, 0, 1)).kind == ErrorKind::unsupported);
    CHECK(open_error(dir, Bytes().start(0, 0, 4)).kind == ErrorKind::unsupported);
    CHECK(contains(open_message(dir, Bytes().start(0, 0, 0x03000000)), "the other byte order"));
    CHECK(contains(open_message(dir, Bytes().start(0, 1).str("k").u32(GGUF_TYPE_COUNT).u64(0)),
                   "key 'k': unknown type 13"));
    CHECK(contains(open_message(dir, Bytes().start(0, 1).str("k").u32(GGUF_TYPE_ARRAY).u32(GGUF_TYPE_ARRAY).u64(0)),
                   "unknown element type 9"));
    const auto alignment = [&](uint32_t type, uint32_t value) {
        return open_message(dir, Bytes().start(0, 1).str("general.alignment").u32(type).u32(value));
    };
    CHECK(contains(alignment(GGUF_TYPE_UINT32, 0), "not a power of two"));
    CHECK(contains(alignment(GGUF_TYPE_UINT32, 33), "not a power of two"));
    CHECK(contains(alignment(GGUF_TYPE_UINT32, 4), "at least 8"));
    CHECK(contains(alignment(GGUF_TYPE_INT32, 32), "expected u32, found i32"));
    Bytes far;
    far.start(1, 1)
        .str("general.alignment")
        .u32(GGUF_TYPE_UINT32)
        .u32(1u << 31)
        .tensor("t", { 1 }, GGML_TYPE_F32, 0)
        .data(64);
    CHECK(contains(open_message(dir, far), "tensor data ends at byte"));
    CHECK_NOTHROW(GgufReader::open(dir.write("v2.gguf", Bytes().start(0, 0, 2).text)));
    CHECK_NOTHROW(GgufReader::open(
        dir.write("exact.gguf", Bytes().start(1, 0).tensor("t", { 1 }, GGML_TYPE_F32, 0).data(4).text)));
}

TEST_CASE("names out of damaged files are safe to print") {
    const TempDir     dir;
    const std::string message = open_message(dir, Bytes().start(0, 1).str("\x1B[31m\xFF\n").u32(99));
    CHECK(contains(message, "key '\\x1B[31m\\xFF\\n': unknown type 99"));
}
