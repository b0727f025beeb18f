#include "gguf/writer.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "ggml-cpp.h"
#include "gguf/keys.h"
#include "gguf/reader.h"

#include <limits>
#include <unordered_set>
#include <utility>

namespace penelope {

struct GgufWriter::Impl {
    Impl(const std::string & path, bool force) : file(path, force), gguf(gguf_init_empty()) {}

    AtomicFile                      file;
    gguf_context_ptr                gguf;
    std::unordered_set<std::string> names;
    int64_t                         n_written   = 0;     // tensors
    size_t                          chunk_bytes = 0;     // bytes of the tensor after those
    bool                            has_header  = false; // begin_data() was called

    [[noreturn]] void fail(const std::string & what) const {
        throw Error(ErrorKind::format, in_quotes(file.path(), 1024) + ": " + what);
    }

    // The key as a C string, or an Error where ggml would abort or cut.
    std::string checked_key(std::string_view key) const {
        if (has_header) {
            fail("key " + in_quotes(key) + ": set after the header was written");
        }
        if (key.empty() || key.size() > 65535 || key.find('\0') != std::string_view::npos) {
            fail("key " + in_quotes(key) + ": a key has 1 to 65535 bytes and no NUL");
        }
        // gguf_context keeps its own alignment, which no call can change: a key that said otherwise would be a lie.
        if (key == GGUF_KEY_GENERAL_ALIGNMENT) {
            fail("key " + in_quotes(key) + ": the alignment is always " + std::to_string(GGUF_DEFAULT_ALIGNMENT));
        }
        return std::string(key);
    }

    std::string checked_value(std::string_view key, std::string_view value) const {
        if (value.find('\0') != std::string_view::npos) {
            fail("key " + in_quotes(key) + ": a string cannot contain a NUL byte");
        }
        return std::string(value);
    }

    void pad() {
        static constexpr char zeros[GGUF_DEFAULT_ALIGNMENT] = {};
        file.write(zeros, GGML_PAD(file.size(), uint64_t(GGUF_DEFAULT_ALIGNMENT)) - file.size());
    }

    void verify() const;
};

// The file as it is on the disk, against what was announced.
void GgufWriter::Impl::verify() const {
    const GgufReader back = GgufReader::open_one_file(file.temp_path());
    bool             same = back.file_size() == file.size() && gguf_get_n_kv(back.raw()) == gguf_get_n_kv(gguf.get()) &&
                int64_t(back.tensors().size()) == gguf_get_n_tensors(gguf.get());
    for (int64_t i = 0; same && i < gguf_get_n_tensors(gguf.get()); ++i) {
        const GgufTensor & tensor = back.tensors()[static_cast<size_t>(i)];
        same                      = tensor.name == gguf_get_tensor_name(gguf.get(), i) &&
               tensor.type == gguf_get_tensor_type(gguf.get(), i) && tensor.size == gguf_get_tensor_size(gguf.get(), i);
    }
    if (!same) {
        throw Error(ErrorKind::io, in_quotes(file.path(), 1024) + ": what was read back differs from what was written",
                    "check the disk");
    }
}

GgufWriter::GgufWriter(std::string path, bool force) {
    log_route_ggml();
    impl_ = std::make_unique<Impl>(path, force);
}

GgufWriter::~GgufWriter() = default;

void GgufWriter::set_u32(std::string_view key, uint32_t value) {
    gguf_set_val_u32(impl_->gguf.get(), impl_->checked_key(key).c_str(), value);
}

void GgufWriter::set_i32(std::string_view key, int32_t value) {
    gguf_set_val_i32(impl_->gguf.get(), impl_->checked_key(key).c_str(), value);
}

void GgufWriter::set_f32(std::string_view key, float value) {
    gguf_set_val_f32(impl_->gguf.get(), impl_->checked_key(key).c_str(), value);
}

void GgufWriter::set_bool(std::string_view key, bool value) {
    gguf_set_val_bool(impl_->gguf.get(), impl_->checked_key(key).c_str(), value);
}

void GgufWriter::set_str(std::string_view key, std::string_view value) {
    gguf_set_val_str(impl_->gguf.get(), impl_->checked_key(key).c_str(), impl_->checked_value(key, value).c_str());
}

void GgufWriter::set_str_array(std::string_view key, const std::vector<std::string> & values) {
    std::vector<const char *> pointers;
    pointers.reserve(values.size());
    for (const std::string & value : values) {
        impl_->checked_value(key, value);
        pointers.push_back(value.c_str());
    }
    gguf_set_arr_str(impl_->gguf.get(), impl_->checked_key(key).c_str(), pointers.data(), pointers.size());
}

void GgufWriter::set_i32_array(std::string_view key, const std::vector<int32_t> & values) {
    gguf_set_arr_data(impl_->gguf.get(), impl_->checked_key(key).c_str(), GGUF_TYPE_INT32, values.data(),
                      values.size());
}

void GgufWriter::set_f32_array(std::string_view key, const std::vector<float> & values) {
    gguf_set_arr_data(impl_->gguf.get(), impl_->checked_key(key).c_str(), GGUF_TYPE_FLOAT32, values.data(),
                      values.size());
}

void GgufWriter::set_bool_array(std::string_view key, const std::vector<bool> & values) {
    const std::vector<int8_t> bytes(values.begin(), values.end());
    gguf_set_arr_data(impl_->gguf.get(), impl_->checked_key(key).c_str(), GGUF_TYPE_BOOL, bytes.data(), bytes.size());
}

void GgufWriter::remove(std::string_view key) {
    gguf_remove_key(impl_->gguf.get(), impl_->checked_key(key).c_str());
}

void GgufWriter::copy_keys(const GgufReader & source) {
    if (impl_->has_header) {
        impl_->fail("keys copied after the header was written");
    }
    gguf_set_kv(impl_->gguf.get(), source.raw());
    for (const char * key :
         { GGUF_KEY_GENERAL_ALIGNMENT, keys::split_number, keys::split_count, keys::split_tensors_count }) {
        gguf_remove_key(impl_->gguf.get(), key);
    }
}

void GgufWriter::add_tensor(const std::string & name, ggml_type type, const std::vector<int64_t> & ne) {
    const std::string what = "tensor " + in_quotes(name);
    if (impl_->has_header) {
        impl_->fail(what + ": announced after the header was written");
    }
    if (name.empty() || name.size() >= GGML_MAX_NAME || name.find('\0') != std::string::npos) {
        impl_->fail(what + ": a name has 1 to " + std::to_string(GGML_MAX_NAME - 1) + " bytes and no NUL");
    }
    if (type < 0 || type >= GGML_TYPE_COUNT || ggml_blck_size(type) <= 0) {
        impl_->fail(what + ": unknown tensor type " + std::to_string(int(type)));
    }
    if (ne.empty() || ne.size() > GGML_MAX_DIMS) {
        impl_->fail(what + ": " + std::to_string(ne.size()) + " dimensions, expected 1 to " +
                    std::to_string(GGML_MAX_DIMS));
    }
    const int64_t block = ggml_blck_size(type);
    if (ne[0] % block != 0) {
        impl_->fail(what + ": rows of " + std::to_string(ne[0]) + " elements, but type " + ggml_type_name(type) +
                    " needs a multiple of " + std::to_string(block));
    }
    ggml_tensor tensor{};
    tensor.type  = type;
    tensor.nb[0] = ggml_type_size(type);
    int64_t capacity =
        std::numeric_limits<int64_t>::max() / int64_t(tensor.nb[0]); // elements that can still be multiplied in
    for (size_t j = 0; j < GGML_MAX_DIMS; ++j) {
        tensor.ne[j] = j < ne.size() ? ne[j] : 1;
        if (tensor.ne[j] < 1 || tensor.ne[j] > capacity) {
            impl_->fail(what + ": shape " + format_shape(ne) + " is not possible");
        }
        capacity /= tensor.ne[j];
        if (j > 0) {
            tensor.nb[j] = tensor.nb[j - 1] * static_cast<size_t>(j == 1 ? tensor.ne[0] / block : tensor.ne[j - 1]);
        }
    }
    if (!impl_->names.insert(name).second) {
        impl_->fail(what + ": announced twice");
    }
    ggml_set_name(&tensor, name.c_str());
    gguf_add_tensor(impl_->gguf.get(), &tensor);
}

void GgufWriter::begin_data() {
    if (impl_->has_header) {
        impl_->fail("the header was written already");
    }
    const gguf_context * gguf = impl_->gguf.get();
    std::vector<uint8_t> header(gguf_get_meta_size(gguf));
    gguf_get_meta_data(gguf, header.data());
    uint64_t total = header.size();
    for (int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
        total += GGML_PAD(uint64_t(gguf_get_tensor_size(gguf, i)), uint64_t(GGUF_DEFAULT_ALIGNMENT));
    }
    impl_->file.require_space(total);
    impl_->file.write(header.data(), header.size());
    impl_->has_header = true;
}

void GgufWriter::write_chunk(const std::string & name, const void * data, size_t size) {
    const gguf_context * gguf = impl_->gguf.get();
    const std::string    what = "tensor " + in_quotes(name);
    const int64_t        i    = impl_->n_written;
    if (!impl_->has_header) {
        impl_->fail(what + ": data before the header");
    }
    if (i >= gguf_get_n_tensors(gguf)) {
        impl_->fail(what + ": data after the last announced tensor");
    }
    if (name != gguf_get_tensor_name(gguf, i)) {
        impl_->fail(what + ": expected the data of " + in_quotes(gguf_get_tensor_name(gguf, i)));
    }
    const size_t total = gguf_get_tensor_size(gguf, i);
    if (size > total - impl_->chunk_bytes) {
        impl_->fail(what + ": " + std::to_string(impl_->chunk_bytes + size) + " bytes of data, expected " +
                    std::to_string(total));
    }
    impl_->file.write(data, size);
    impl_->chunk_bytes += size;
    if (impl_->chunk_bytes == total) {
        impl_->pad();
        impl_->chunk_bytes = 0;
        ++impl_->n_written;
    }
}

void GgufWriter::write_tensor(const std::string & name, const void * data, size_t size) {
    const gguf_context * gguf = impl_->gguf.get();
    const int64_t        i    = impl_->n_written;
    const bool is_next = impl_->has_header && i < gguf_get_n_tensors(gguf) && name == gguf_get_tensor_name(gguf, i);
    if (is_next && impl_->chunk_bytes + size != gguf_get_tensor_size(gguf, i)) {
        impl_->fail("tensor " + in_quotes(name) + ": " + std::to_string(impl_->chunk_bytes + size) +
                    " bytes of data, expected " + std::to_string(gguf_get_tensor_size(gguf, i)));
    }
    write_chunk(name, data, size);
}

void GgufWriter::finish(const BeforeRename & before_rename) {
    const gguf_context * gguf = impl_->gguf.get();
    if (!impl_->has_header) {
        begin_data();
    }
    if (impl_->n_written < gguf_get_n_tensors(gguf)) {
        impl_->fail("tensor " + in_quotes(gguf_get_tensor_name(gguf, impl_->n_written)) +
                    ": announced but its data never came");
    }
    impl_->file.sync();
    impl_->verify();
    if (before_rename) {
        before_rename(impl_->file.temp_path());
    }
    impl_->file.commit();
}

} // namespace penelope
