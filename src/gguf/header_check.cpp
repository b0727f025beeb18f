#include "gguf/header_check.h"

#include "base/error.h"
#include "base/format.h"
#include "ggml.h"
#include "gguf.h"
#include "gguf/foreign_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

namespace penelope {

namespace {

// Far above every real file (a vocabulary of 256 Ki tokens with its merges takes about 12 MiB) and low enough that
// ggml's quadratic searches for duplicates and its copies of the strings stay harmless.
constexpr size_t   max_header_size = size_t(256) << 20;
constexpr uint64_t max_n_kv        = 1 << 12;
constexpr uint64_t max_n_tensors   = 1 << 14;
constexpr uint64_t max_key_length  = (1 << 16) - 1;

class HeaderChecker {
  public:
    HeaderChecker(const std::string & path, const uint8_t * data, size_t size)
        : path_(path), data_(data), size_(size) {}

    size_t run() {
        read_preamble();
        for (uint64_t i = 0; i < n_kv_; ++i) {
            read_kv(i);
        }
        uint64_t end = 0; // of the data so far, relative to the data section
        for (uint64_t i = 0; i < n_tensors_; ++i) {
            read_tensor_info(i, end);
        }
        if (n_tensors_ == 0) {
            return pos_;
        }
        const size_t data_begin = GGML_PAD(pos_, alignment_);
        if (data_begin > size_ || end > size_ - data_begin) {
            fail("tensor data ends at byte " + std::to_string(data_begin + end) + " but the file has " +
                     std::to_string(size_),
                 truncated_hint);
        }
        return data_begin;
    }

  private:
    static constexpr const char * truncated_hint = "the file is cut short or damaged; fetch or make it again";
    static constexpr const char * damaged_hint   = "the file is damaged; fetch or make it again";

    [[noreturn]] void fail(const std::string & what, const std::string & hint = damaged_hint) const {
        throw Error(ErrorKind::format, in_quotes(path_, 1024) + ": " + what, hint);
    }

    size_t remaining() const { return size_ - pos_; }

    template <typename T> T read(const std::string & what) {
        if (remaining() < sizeof(T)) {
            fail("ends at byte " + std::to_string(size_) + " inside " + what, truncated_hint);
        }
        T value;
        std::memcpy(&value, data_ + pos_, sizeof(T));
        advance(sizeof(T), what);
        return value;
    }

    void advance(uint64_t n, const std::string & what) {
        pos_ += static_cast<size_t>(n);
        if (pos_ > max_header_size) {
            fail(what + ": the header is longer than " + format_bytes(max_header_size));
        }
    }

    std::string_view read_string(const std::string & what, uint64_t max_length) {
        const uint64_t length = read<uint64_t>(what);
        if (length > remaining()) {
            fail(what + ": a string of " + std::to_string(length) + " bytes does not fit into the remaining " +
                     std::to_string(remaining()) + " of the file",
                 truncated_hint);
        }
        if (length > max_length) {
            fail(what + ": " + std::to_string(length) + " bytes are too long, at most " + std::to_string(max_length) +
                 " are allowed");
        }
        const std::string_view text(reinterpret_cast<const char *>(data_) + pos_, static_cast<size_t>(length));
        // ggml hands strings on as C strings and would cut them there.
        if (text.find('\0') != std::string_view::npos) {
            fail(what + ": contains a NUL byte");
        }
        advance(length, what);
        return text;
    }

    void read_preamble() {
        if (size_ < 4 || std::memcmp(data_, GGUF_MAGIC, 4) != 0) {
            const ForeignFile file =
                identify_foreign_file({ reinterpret_cast<const char *>(data_), std::min<size_t>(size_, 4096) }, size_);
            fail(file.what, file.hint);
        }
        pos_                   = 4;
        const uint32_t version = read<uint32_t>("the version number");
        if (version != 0 && (version & 0xFFFF) == 0) {
            fail("is a GGUF file of the other byte order", "convert the model again on a machine of this kind");
        }
        if (version < 2 || version > GGUF_VERSION) {
            throw Error(ErrorKind::unsupported,
                        in_quotes(path_, 1024) + ": GGUF version " + std::to_string(version) + ", expected 2 or " +
                            std::to_string(GGUF_VERSION),
                        "convert the model again with a current converter");
        }
        n_tensors_ = read<uint64_t>("the number of tensors");
        n_kv_      = read<uint64_t>("the number of keys");
        if (n_tensors_ > max_n_tensors) {
            fail("announces " + std::to_string(n_tensors_) + " tensors, at most " + std::to_string(max_n_tensors) +
                 " are allowed");
        }
        if (n_kv_ > max_n_kv) {
            fail("announces " + std::to_string(n_kv_) + " keys, at most " + std::to_string(max_n_kv) + " are allowed");
        }
    }

    void read_kv(uint64_t index) {
        const std::string_view key = read_string("key number " + std::to_string(index), max_key_length);
        if (key.empty()) {
            fail("key number " + std::to_string(index) + " is empty");
        }
        const std::string what = "key " + in_quotes(key);
        if (!keys_.insert(key).second) {
            fail(what + ": appears twice");
        }
        int32_t    type     = read<int32_t>(what);
        const bool is_array = type == GGUF_TYPE_ARRAY;
        uint64_t   n        = 1;
        if (is_array) {
            type = read<int32_t>(what);
            n    = read<uint64_t>(what);
        }
        if (type < 0 || type >= GGUF_TYPE_COUNT || type == GGUF_TYPE_ARRAY) {
            fail(what + ": unknown " + (is_array ? "element " : "") + "type " + std::to_string(type));
        }
        if (key == GGUF_KEY_GENERAL_ALIGNMENT) {
            read_alignment(what, is_array, type);
            return;
        }
        const uint64_t n_bytes_min = type == GGUF_TYPE_STRING ? sizeof(uint64_t) : scalar_size(type); // per element
        if (n > remaining() / n_bytes_min) {
            fail(what + ": " +
                     (is_array ? "an array of " + std::to_string(n) + " elements" : std::string("its value")) +
                     " does not fit into the remaining " + std::to_string(remaining()) + " bytes of the file",
                 truncated_hint);
        }
        if (type != GGUF_TYPE_STRING) {
            advance(n * n_bytes_min, what);
            return;
        }
        for (uint64_t i = 0; i < n; ++i) {
            read_string(what, max_header_size);
        }
    }

    void read_alignment(const std::string & what, bool is_array, int32_t type) {
        if (is_array || type != GGUF_TYPE_UINT32) {
            fail(what + ": expected u32, found " +
                 (is_array ? "an array" : gguf_type_name(static_cast<gguf_type>(type))));
        }
        alignment_ = read<uint32_t>(what);
        if (alignment_ < 8 || (alignment_ & (alignment_ - 1)) != 0) {
            fail(what + ": " + std::to_string(alignment_) + " is not a power of two of at least 8");
        }
    }

    void read_tensor_info(uint64_t index, uint64_t & end) {
        const std::string_view name = read_string("name of tensor number " + std::to_string(index), GGML_MAX_NAME - 1);
        const std::string      what = "tensor " + in_quotes(name);
        if (name.empty()) {
            fail("tensor number " + std::to_string(index) + " has no name");
        }
        if (!names_.insert(name).second) {
            fail(what + ": appears twice");
        }
        const uint32_t n_dims = read<uint32_t>(what);
        if (n_dims > GGML_MAX_DIMS) {
            fail(what + ": " + std::to_string(n_dims) + " dimensions, at most " + std::to_string(GGML_MAX_DIMS) +
                 " are allowed");
        }
        int64_t ne[GGML_MAX_DIMS] = { 1, 1, 1, 1 };
        for (uint32_t j = 0; j < n_dims; ++j) {
            ne[j] = read<int64_t>(what);
            if (ne[j] < 1) {
                fail(what + ": dimension " + std::to_string(j) + " is " + std::to_string(ne[j]) +
                     ", expected at least 1");
            }
        }
        const int32_t type = read<int32_t>(what);
        if (type < 0 || type >= GGML_TYPE_COUNT || ggml_blck_size(static_cast<ggml_type>(type)) <= 0) {
            throw Error(ErrorKind::unsupported,
                        in_quotes(path_, 1024) + ": " + what + ": unknown tensor type " + std::to_string(type),
                        "the file is damaged, or made for a newer or much older program");
        }
        const uint64_t n_bytes = byte_size(what, static_cast<ggml_type>(type), ne);
        const uint64_t offset  = read<uint64_t>(what);
        const uint64_t begin   = GGML_PAD(end, static_cast<uint64_t>(alignment_));
        if (offset != begin) {
            fail(what + ": data at offset " + std::to_string(offset) + ", expected " + std::to_string(begin));
        }
        end = begin + n_bytes;
        // With end at most the size of the file here, neither the sum nor the padding of the next tensor can overflow.
        if (end > size_) {
            fail(what + ": its " + std::to_string(n_bytes) + " bytes of data end beyond the file", truncated_hint);
        }
    }

    // The bytes of a tensor, or an Error when they are more than the file: so nothing that follows can overflow.
    uint64_t byte_size(const std::string & what, ggml_type type, const int64_t * ne) const {
        const int64_t block = ggml_blck_size(type);
        if (ne[0] % block != 0) {
            fail(what + ": rows of " + std::to_string(ne[0]) + " elements, but type " + ggml_type_name(type) +
                 " needs a multiple of " + std::to_string(block));
        }
        uint64_t n_bytes = ggml_type_size(type);
        for (int j = 0; j < GGML_MAX_DIMS; ++j) {
            const uint64_t n = static_cast<uint64_t>(j == 0 ? ne[0] / block : ne[j]);
            if (n > size_ / n_bytes) {
                fail(what + ": shape " + format_shape({ ne[0], ne[1], ne[2], ne[3] }) + " of type " +
                         ggml_type_name(type) + " is larger than the file",
                     truncated_hint);
            }
            n_bytes *= n;
        }
        return n_bytes;
    }

    static uint64_t scalar_size(int32_t type) {
        switch (type) {
            case GGUF_TYPE_UINT8:
            case GGUF_TYPE_INT8:
            case GGUF_TYPE_BOOL: return 1;
            case GGUF_TYPE_UINT16:
            case GGUF_TYPE_INT16: return 2;
            case GGUF_TYPE_UINT32:
            case GGUF_TYPE_INT32:
            case GGUF_TYPE_FLOAT32: return 4;
            default: return 8;
        }
    }

    const std::string & path_;
    const uint8_t *     data_;
    size_t              size_;
    size_t              pos_       = 0;
    uint64_t            n_tensors_ = 0;
    uint64_t            n_kv_      = 0;
    size_t              alignment_ = GGUF_DEFAULT_ALIGNMENT;

    std::unordered_set<std::string_view> keys_;
    std::unordered_set<std::string_view> names_;
};

} // namespace

size_t check_gguf_header(const std::string & path, const uint8_t * data, size_t size) {
    return HeaderChecker(path, data, size).run();
}

} // namespace penelope
