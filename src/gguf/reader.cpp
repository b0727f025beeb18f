#include "gguf/reader.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/part.h"

#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

namespace penelope {

namespace {

constexpr const char * tensor_hint = "the file is incomplete or its metadata belong to another; make it again";

} // namespace

struct GgufReader::Impl {
    explicit Impl(std::vector<GgufPart> opened);

    std::vector<MappedFile>                      files; // the parts in order
    gguf_context_ptr                             gguf;  // keys: of the first part
    std::vector<GgufTensor>                      tensors;
    std::unordered_map<std::string_view, size_t> index; // names point into `tensors`

    [[noreturn]] void fail(const std::string & what, const std::string & hint = "") const {
        throw Error(ErrorKind::format, in_quotes(files.front().path(), 1024) + ": " + what, hint);
    }

    int64_t find(std::string_view key) const { return gguf_find_key(gguf.get(), std::string(key).c_str()); }

    // The value that `at` (one of the readers below) finds under the key, if there is one.
    template <typename T>
    std::optional<T> find_with(std::string_view key, T (Impl::*at)(std::string_view, int64_t) const) const {
        const int64_t id = find(key);
        return id < 0 ? std::nullopt : std::optional<T>((this->*at)(key, id));
    }

    int64_t require(std::string_view key, const char * expected) const {
        const int64_t id = find(key);
        if (id < 0) {
            fail("key " + in_quotes(key) + ": missing, expected " + expected);
        }
        return id;
    }

    std::string type_name(int64_t id) const {
        const gguf_type type = gguf_get_kv_type(gguf.get(), id);
        return type == GGUF_TYPE_ARRAY ? std::string("an array of ") + gguf_type_name(gguf_get_arr_type(gguf.get(), id))
                                       : gguf_type_name(type);
    }

    [[noreturn]] void wrong_type(std::string_view key, int64_t id, const char * expected) const {
        fail("key " + in_quotes(key) + ": expected " + expected + ", found " + type_name(id));
    }

    void check_type(std::string_view key, int64_t id, gguf_type type, const char * expected) const {
        if (gguf_get_kv_type(gguf.get(), id) != type) {
            wrong_type(key, id, expected);
        }
    }

    gguf_type check_array(std::string_view key, int64_t id, const char * expected) const {
        check_type(key, id, GGUF_TYPE_ARRAY, expected);
        return gguf_get_arr_type(gguf.get(), id);
    }

    uint32_t                 u32_at(std::string_view key, int64_t id) const;
    float                    f32_at(std::string_view key, int64_t id) const;
    bool                     bool_at(std::string_view key, int64_t id) const;
    std::string              str_at(std::string_view key, int64_t id) const;
    std::vector<std::string> str_array_at(std::string_view key, int64_t id) const;
    std::vector<int32_t>     i32_array_at(std::string_view key, int64_t id) const;
    std::vector<float>       f32_array_at(std::string_view key, int64_t id) const;
};

namespace {

constexpr const char * expect_u32       = "an integer of 32 bits without sign";
constexpr const char * expect_f32       = "f32";
constexpr const char * expect_bool      = "bool";
constexpr const char * expect_str       = "a string";
constexpr const char * expect_str_array = "an array of strings";
constexpr const char * expect_i32_array = "an array of 32-bit integers";
constexpr const char * expect_f32_array = "an array of f32";

// False for types that are no integers. `value` saturates at the ends of int64_t, which no caller can represent anyway.
bool load_integer(gguf_type type, const void * data, size_t i, int64_t & value) {
    const auto load = [&](auto sample) {
        std::memcpy(&sample, static_cast<const char *>(data) + i * sizeof(sample), sizeof(sample));
        return sample;
    };
    switch (type) {
        case GGUF_TYPE_UINT8: value = load(uint8_t{}); return true;
        case GGUF_TYPE_INT8: value = load(int8_t{}); return true;
        case GGUF_TYPE_UINT16: value = load(uint16_t{}); return true;
        case GGUF_TYPE_INT16: value = load(int16_t{}); return true;
        case GGUF_TYPE_UINT32: value = load(uint32_t{}); return true;
        case GGUF_TYPE_INT32: value = load(int32_t{}); return true;
        case GGUF_TYPE_INT64: value = load(int64_t{}); return true;
        case GGUF_TYPE_UINT64: {
            const uint64_t wide = load(uint64_t{});
            value = wide > uint64_t(std::numeric_limits<int64_t>::max()) ? std::numeric_limits<int64_t>::max()
                                                                         : int64_t(wide);
            return true;
        }
        default: return false;
    }
}

} // namespace

uint32_t GgufReader::Impl::u32_at(std::string_view key, int64_t id) const {
    int64_t         value = 0;
    const gguf_type type  = gguf_get_kv_type(gguf.get(), id);
    if (type == GGUF_TYPE_ARRAY || type == GGUF_TYPE_STRING ||
        !load_integer(type, gguf_get_val_data(gguf.get(), id), 0, value)) {
        wrong_type(key, id, expect_u32);
    }
    if (value < 0 || value > int64_t(std::numeric_limits<uint32_t>::max())) {
        fail("key " + in_quotes(key) + ": expected " + expect_u32 + ", found " + std::to_string(value));
    }
    return static_cast<uint32_t>(value);
}

float GgufReader::Impl::f32_at(std::string_view key, int64_t id) const {
    check_type(key, id, GGUF_TYPE_FLOAT32, expect_f32);
    return gguf_get_val_f32(gguf.get(), id);
}

bool GgufReader::Impl::bool_at(std::string_view key, int64_t id) const {
    check_type(key, id, GGUF_TYPE_BOOL, expect_bool);
    return gguf_get_val_bool(gguf.get(), id);
}

std::string GgufReader::Impl::str_at(std::string_view key, int64_t id) const {
    check_type(key, id, GGUF_TYPE_STRING, expect_str);
    return gguf_get_val_str(gguf.get(), id);
}

std::vector<std::string> GgufReader::Impl::str_array_at(std::string_view key, int64_t id) const {
    if (check_array(key, id, expect_str_array) != GGUF_TYPE_STRING) {
        wrong_type(key, id, expect_str_array);
    }
    std::vector<std::string> out(gguf_get_arr_n(gguf.get(), id));
    for (size_t i = 0; i < out.size(); ++i) {
        out[i] = gguf_get_arr_str(gguf.get(), id, i);
    }
    return out;
}

std::vector<int32_t> GgufReader::Impl::i32_array_at(std::string_view key, int64_t id) const {
    gguf_type type = check_array(key, id, expect_i32_array);
    if (type == GGUF_TYPE_STRING || type == GGUF_TYPE_FLOAT32 || type == GGUF_TYPE_FLOAT64) {
        wrong_type(key, id, expect_i32_array);
    }
    if (type == GGUF_TYPE_BOOL) {
        type = GGUF_TYPE_INT8; // as they are stored
    }
    std::vector<int32_t> out(gguf_get_arr_n(gguf.get(), id));
    const void *         data = gguf_get_arr_data(gguf.get(), id);
    for (size_t i = 0; i < out.size(); ++i) {
        int64_t value = 0;
        load_integer(type, data, i, value);
        if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
            fail("key " + in_quotes(key) + ": expected " + expect_i32_array + ", found " + std::to_string(value) +
                 " at index " + std::to_string(i));
        }
        out[i] = static_cast<int32_t>(value);
    }
    return out;
}

std::vector<float> GgufReader::Impl::f32_array_at(std::string_view key, int64_t id) const {
    if (check_array(key, id, expect_f32_array) != GGUF_TYPE_FLOAT32) {
        wrong_type(key, id, expect_f32_array);
    }
    std::vector<float> out(gguf_get_arr_n(gguf.get(), id));
    if (!out.empty()) {
        std::memcpy(out.data(), gguf_get_arr_data(gguf.get(), id), out.size() * sizeof(float));
    }
    return out;
}

GgufReader::Impl::Impl(std::vector<GgufPart> opened) : gguf(std::move(opened.front().gguf)) {
    size_t n_tensors = 0;
    for (const GgufPart & part : opened) {
        n_tensors += part.tensors.size();
    }
    tensors.reserve(n_tensors);
    for (GgufPart & part : opened) {
        for (GgufTensor & tensor : part.tensors) {
            tensor.i_file = files.size();
            tensors.push_back(std::move(tensor));
            index.emplace(tensors.back().name, tensors.size() - 1);
        }
        files.push_back(std::move(part.file));
    }
}

GgufReader GgufReader::open(const std::string & path, const ByteView & bytes) {
    return GgufReader(std::make_unique<Impl>(open_parts(path, bytes)));
}

GgufReader GgufReader::open_one_file(const std::string & path) {
    std::vector<GgufPart> parts;
    parts.push_back(open_part(path));
    return GgufReader(std::make_unique<Impl>(std::move(parts)));
}

GgufReader::GgufReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgufReader::GgufReader(GgufReader &&) noexcept             = default;
GgufReader & GgufReader::operator=(GgufReader &&) noexcept = default;
GgufReader::~GgufReader()                                  = default;

const std::string & GgufReader::path() const {
    return impl_->files.front().path();
}
size_t GgufReader::file_size() const {
    size_t size = 0;
    for (const MappedFile & file : impl_->files) {
        size += file.size();
    }
    return size;
}
size_t GgufReader::n_files() const {
    return impl_->files.size();
}
const gguf_context * GgufReader::raw() const {
    return impl_->gguf.get();
}

bool GgufReader::has(std::string_view key) const {
    return impl_->find(key) >= 0;
}

uint32_t GgufReader::get_u32(std::string_view key) const {
    return impl_->u32_at(key, impl_->require(key, expect_u32));
}
float GgufReader::get_f32(std::string_view key) const {
    return impl_->f32_at(key, impl_->require(key, expect_f32));
}

std::string GgufReader::get_str(std::string_view key) const {
    return impl_->str_at(key, impl_->require(key, expect_str));
}

std::vector<std::string> GgufReader::get_str_array(std::string_view key) const {
    return impl_->str_array_at(key, impl_->require(key, expect_str_array));
}

std::vector<int32_t> GgufReader::get_i32_array(std::string_view key) const {
    return impl_->i32_array_at(key, impl_->require(key, expect_i32_array));
}

std::optional<uint32_t> GgufReader::find_u32(std::string_view key) const {
    return impl_->find_with(key, &Impl::u32_at);
}

std::optional<float> GgufReader::find_f32(std::string_view key) const {
    return impl_->find_with(key, &Impl::f32_at);
}

std::optional<bool> GgufReader::find_bool(std::string_view key) const {
    return impl_->find_with(key, &Impl::bool_at);
}

std::optional<std::string> GgufReader::find_str(std::string_view key) const {
    return impl_->find_with(key, &Impl::str_at);
}

std::optional<std::vector<int32_t>> GgufReader::find_i32_array(std::string_view key) const {
    return impl_->find_with(key, &Impl::i32_array_at);
}

std::optional<std::vector<float>> GgufReader::find_f32_array(std::string_view key) const {
    return impl_->find_with(key, &Impl::f32_array_at);
}

const std::vector<GgufTensor> & GgufReader::tensors() const {
    return impl_->tensors;
}

const GgufTensor * GgufReader::find_tensor(std::string_view name) const {
    const auto it = impl_->index.find(name);
    return it == impl_->index.end() ? nullptr : &impl_->tensors[it->second];
}

const GgufTensor & GgufReader::get_tensor(std::string_view name, const std::vector<int64_t> & ne) const {
    const GgufTensor * tensor = find_tensor(name);
    if (tensor == nullptr) {
        impl_->fail("tensor " + in_quotes(name) + ": missing, expected shape " + format_shape(ne), tensor_hint);
    }
    bool same = ne.size() <= GGML_MAX_DIMS;
    for (size_t j = 0; same && j < GGML_MAX_DIMS; ++j) {
        same = tensor->ne[j] == (j < ne.size() ? ne[j] : 1);
    }
    if (!same) {
        impl_->fail("tensor " + in_quotes(name) + ": expected shape " + format_shape(ne) + ", found " +
                        format_shape({ tensor->ne, tensor->ne + tensor->n_dims }),
                    tensor_hint);
    }
    return *tensor;
}

void GgufReader::release_pages(const GgufTensor & tensor) const {
    impl_->files[tensor.i_file].drop(tensor.offset, tensor.size);
}

void GgufReader::release_pages(const GgufTensor & tensor, size_t offset, size_t size) const {
    if (offset <= tensor.size) {
        impl_->files[tensor.i_file].drop(tensor.offset + offset, std::min(size, tensor.size - offset));
    }
}

} // namespace penelope
