#include "convert/gguf_metadata.h"

#include "gguf/reader.h"

namespace penelope {

namespace {

constexpr size_t k_shown_elements = 8;    // of an array in the metadata
constexpr size_t k_shown_bytes    = 4096; // of a string in the metadata

template <typename T> OrderedJson number_array(const void * data, size_t n) {
    OrderedJson out = OrderedJson::array();
    for (size_t i = 0; i < n; i++) {
        out.push_back(static_cast<const T *>(data)[i]);
    }
    return out;
}

OrderedJson array_elements(const gguf_context * gguf, int64_t id, size_t n) {
    const gguf_type type = gguf_get_arr_type(gguf, id);
    if (type == GGUF_TYPE_STRING) {
        OrderedJson out = OrderedJson::array();
        for (size_t i = 0; i < n; i++) {
            out.push_back(gguf_get_arr_str(gguf, id, i));
        }
        return out;
    }
    const void * data = gguf_get_arr_data(gguf, id);
    switch (type) {
        case GGUF_TYPE_UINT8: return number_array<uint8_t>(data, n);
        case GGUF_TYPE_INT8: return number_array<int8_t>(data, n);
        case GGUF_TYPE_UINT16: return number_array<uint16_t>(data, n);
        case GGUF_TYPE_INT16: return number_array<int16_t>(data, n);
        case GGUF_TYPE_UINT32: return number_array<uint32_t>(data, n);
        case GGUF_TYPE_INT32: return number_array<int32_t>(data, n);
        case GGUF_TYPE_FLOAT32: return number_array<float>(data, n);
        case GGUF_TYPE_UINT64: return number_array<uint64_t>(data, n);
        case GGUF_TYPE_INT64: return number_array<int64_t>(data, n);
        case GGUF_TYPE_FLOAT64: return number_array<double>(data, n);
        case GGUF_TYPE_BOOL: return number_array<bool>(data, n);
        default: return OrderedJson::array();
    }
}

OrderedJson value_of(const gguf_context * gguf, int64_t id) {
    switch (gguf_get_kv_type(gguf, id)) {
        case GGUF_TYPE_UINT8: return gguf_get_val_u8(gguf, id);
        case GGUF_TYPE_INT8: return gguf_get_val_i8(gguf, id);
        case GGUF_TYPE_UINT16: return gguf_get_val_u16(gguf, id);
        case GGUF_TYPE_INT16: return gguf_get_val_i16(gguf, id);
        case GGUF_TYPE_UINT32: return gguf_get_val_u32(gguf, id);
        case GGUF_TYPE_INT32: return gguf_get_val_i32(gguf, id);
        case GGUF_TYPE_FLOAT32: return gguf_get_val_f32(gguf, id);
        case GGUF_TYPE_UINT64: return gguf_get_val_u64(gguf, id);
        case GGUF_TYPE_INT64: return gguf_get_val_i64(gguf, id);
        case GGUF_TYPE_FLOAT64: return gguf_get_val_f64(gguf, id);
        case GGUF_TYPE_BOOL: return gguf_get_val_bool(gguf, id);
        case GGUF_TYPE_STRING: {
            const std::string text = gguf_get_val_str(gguf, id);
            return text.size() <= k_shown_bytes
                       ? OrderedJson(text)
                       : OrderedJson{ { "bytes", text.size() }, { "first", text.substr(0, 256) } };
        }
        case GGUF_TYPE_ARRAY: {
            const size_t n = gguf_get_arr_n(gguf, id);
            if (n <= 2 * k_shown_elements) {
                return array_elements(gguf, id, n);
            }
            return { { "count", n }, { "first", array_elements(gguf, id, k_shown_elements) } };
        }
        default: return nullptr;
    }
}

} // namespace

OrderedJson metadata_of(const GgufReader & file) {
    OrderedJson out = OrderedJson::object();
    for (int64_t id = 0; id < gguf_get_n_kv(file.raw()); id++) {
        out[gguf_get_key(file.raw(), id)] = value_of(file.raw(), id);
    }
    return out;
}

} // namespace penelope
