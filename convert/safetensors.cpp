#include "convert/safetensors.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "ggml.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace penelope {

namespace {

// The reference implementation refuses larger headers too; a model with 100,000 tensors needs about 12 MB.
constexpr uint64_t k_max_header_bytes = 100'000'000;
constexpr size_t   k_length_bytes     = 8; // the little-endian header size at the start of the file
// root object -> tensor object -> shape array
constexpr int k_max_depth = 3;

struct TypeRow {
    SafetensorsType type;
    const char *    name;
    size_t          size;
};

constexpr TypeRow k_types[] = {
    { SafetensorsType::f64, "F64", 8 },         { SafetensorsType::f32, "F32", 4 },
    { SafetensorsType::f16, "F16", 2 },         { SafetensorsType::bf16, "BF16", 2 },
    { SafetensorsType::i64, "I64", 8 },         { SafetensorsType::i32, "I32", 4 },
    { SafetensorsType::i16, "I16", 2 },         { SafetensorsType::i8, "I8", 1 },
    { SafetensorsType::u64, "U64", 8 },         { SafetensorsType::u32, "U32", 4 },
    { SafetensorsType::u16, "U16", 2 },         { SafetensorsType::u8, "U8", 1 },
    { SafetensorsType::boolean, "BOOL", 1 },    { SafetensorsType::f8_e4m3, "F8_E4M3", 1 },
    { SafetensorsType::f8_e5m2, "F8_E5M2", 1 },
};

const TypeRow & type_row(SafetensorsType type) {
    return *std::find_if(std::begin(k_types), std::end(k_types), [&](const TypeRow & row) { return row.type == type; });
}

uint64_t read_u64_le(const uint8_t * p) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | p[i];
    }
    return value;
}

Json parse_header(const std::string & path, const uint8_t * text, size_t size) {
    JsonLimits limits;
    limits.max_depth   = k_max_depth;
    limits.unique_keys = true;
    try {
        const std::string_view header(reinterpret_cast<const char *>(text), size);
        Json                   parsed = parse_json(header, path + ": header is not valid JSON", limits);
        if (!parsed.is_object()) {
            throw Error(ErrorKind::format, path + ": header is not a JSON object");
        }
        return parsed;
    } catch (const Error & error) {
        throw Error(error.kind, error.message(), "the file is damaged or not a safetensors file");
    }
}

uint64_t unsigned_value(const std::string & where, const Json & value) {
    if (!value.is_number_unsigned()) {
        throw Error(ErrorKind::format, where + ": expected a non-negative integer");
    }
    return value.get<uint64_t>();
}

// The entry of one tensor; `begin` receives the start of its data. Offsets are checked against each other by the
// caller.
SafetensorsTensor parse_entry(const std::string & where, const std::string & name, const Json & entry,
                              const uint8_t * data, uint64_t data_size, uint64_t & begin) {
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
        throw Error(ErrorKind::format, where + ": needs dtype, shape and data_offsets");
    }
    const auto & dtype   = entry["dtype"];
    const auto & shape   = entry["shape"];
    const auto & offsets = entry["data_offsets"];
    if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2) {
        throw Error(ErrorKind::format, where + ": dtype, shape or data_offsets is malformed");
    }

    const auto & type_name = dtype.get_ref<const std::string &>();
    const auto   row       = std::find_if(std::begin(k_types), std::end(k_types),
                                          [&](const TypeRow & candidate) { return type_name == candidate.name; });
    if (row == std::end(k_types)) {
        throw Error(ErrorKind::unsupported, where + ": unknown dtype '" + type_name + "'");
    }

    SafetensorsTensor tensor{ name, row->type, {}, nullptr, 0 };
    uint64_t          bytes = row->size;
    bool              empty = false;
    for (const auto & extent : shape) {
        const uint64_t n = unsigned_value(where + ": shape", extent);
        if (n > uint64_t(std::numeric_limits<int64_t>::max())) {
            throw Error(ErrorKind::format, where + ": shape is too large");
        }
        tensor.shape.push_back(int64_t(n));
        empty = empty || n == 0;
        if (n != 0 && bytes > uint64_t(std::numeric_limits<int64_t>::max()) / n) {
            throw Error(ErrorKind::format, where + ": shape is too large");
        }
        bytes *= n == 0 ? 1 : n;
    }
    bytes = empty ? 0 : bytes;

    begin              = unsigned_value(where + ": data_offsets", offsets[0]);
    const uint64_t end = unsigned_value(where + ": data_offsets", offsets[1]);
    if (begin > end || end > data_size) {
        throw Error(ErrorKind::format,
                    where + ": data_offsets " + std::to_string(begin) + ".." + std::to_string(end) +
                        " lie outside the " + std::to_string(data_size) + " bytes of data",
                    "the file is truncated or damaged; fetch it again");
    }
    if (end - begin != bytes) {
        throw Error(ErrorKind::format, where + ": " + type_name + " " + format_shape(tensor.shape) + " needs " +
                                           std::to_string(bytes) + " bytes, data_offsets give " +
                                           std::to_string(end - begin));
    }
    tensor.data = data + begin;
    tensor.size = size_t(bytes);
    return tensor;
}

// Both are little-endian: the file by its format, the machine as for GGUF files.
template <typename T> T load(const uint8_t * p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

} // namespace

const char * safetensors_type_name(SafetensorsType type) {
    return type_row(type).name;
}

size_t safetensors_type_size(SafetensorsType type) {
    return type_row(type).size;
}

int64_t SafetensorsTensor::n_elements() const {
    return int64_t(size / safetensors_type_size(type));
}

void safetensors_to_f32(const SafetensorsTensor & tensor, int64_t first, int64_t n, float * out) {
    if (first < 0 || n < 0 || first > tensor.n_elements() - n) {
        throw Error(ErrorKind::format, "tensor '" + tensor.name + "': elements out of range");
    }
    if (n == 0) {
        return; // data and out may be null, which memcpy must not see
    }
    const uint8_t * p = tensor.data + size_t(first) * safetensors_type_size(tensor.type);
    switch (tensor.type) {
        case SafetensorsType::f32: std::memcpy(out, p, size_t(n) * sizeof(float)); return;
        case SafetensorsType::bf16:
            for (int64_t i = 0; i < n; i++) {
                const uint32_t bits = uint32_t(load<uint16_t>(p + 2 * i)) << 16;
                std::memcpy(out + i, &bits, sizeof bits);
            }
            return;
        case SafetensorsType::f16: {
            ggml_fp16_t buffer[512];
            for (int64_t i = 0; i < n;) {
                const int64_t part = std::min<int64_t>(n - i, 512);
                std::memcpy(buffer, p + 2 * i, size_t(part) * sizeof(ggml_fp16_t));
                ggml_fp16_to_fp32_row(buffer, out + i, part);
                i += part;
            }
            return;
        }
        case SafetensorsType::f64:
            for (int64_t i = 0; i < n; i++) {
                out[i] = float(load<double>(p + 8 * i));
            }
            return;
        default:
            throw Error(ErrorKind::unsupported,
                        "tensor '" + tensor.name + "': dtype " + safetensors_type_name(tensor.type) +
                            " cannot be read as weights",
                        "supported are F32, F16, BF16 and F64");
    }
}

SafetensorsReader::SafetensorsReader(std::string path, MappedFile file)
    : path_(std::move(path)), file_(std::move(file)) {}

SafetensorsReader SafetensorsReader::open(const std::string & path) {
    SafetensorsReader reader(path, MappedFile::open(path));
    reader.parse();
    return reader;
}

void SafetensorsReader::parse() {
    const uint8_t * bytes = file_.data();
    if (file_.size() < k_length_bytes) {
        throw Error(ErrorKind::format, path_ + ": too short for a safetensors file");
    }
    const uint64_t header_size = read_u64_le(bytes);
    if (header_size > k_max_header_bytes) {
        throw Error(ErrorKind::format, path_ + ": header of " + std::to_string(header_size) + " bytes is too large",
                    "the file is damaged or not a safetensors file");
    }
    if (header_size > file_.size() - k_length_bytes) {
        throw Error(ErrorKind::format, path_ + ": truncated inside the header", "fetch the file again");
    }
    const uint8_t * data      = bytes + k_length_bytes + header_size;
    const uint64_t  data_size = file_.size() - k_length_bytes - header_size;

    const Json header = parse_header(path_, bytes + k_length_bytes, size_t(header_size));
    for (const auto & [name, entry] : header.items()) {
        if (name == "__metadata__") {
            if (!entry.is_object()) {
                throw Error(ErrorKind::format, path_ + ": __metadata__ is not an object");
            }
            for (const auto & [key, value] : entry.items()) {
                if (!value.is_string()) {
                    throw Error(ErrorKind::format, path_ + ": __metadata__ '" + key + "' is not a string");
                }
                metadata_[key] = value.get<std::string>();
            }
            continue;
        }
        uint64_t begin = 0;
        tensors_.push_back(parse_entry(path_ + ": tensor '" + name + "'", name, entry, data, data_size, begin));
    }

    std::sort(tensors_.begin(), tensors_.end(), [](const SafetensorsTensor & a, const SafetensorsTensor & b) {
        return a.data != b.data ? a.data < b.data : a.size != b.size ? a.size < b.size : a.name < b.name;
    });
    const uint8_t * expected = data;
    for (const auto & tensor : tensors_) {
        if (tensor.data < expected) {
            throw Error(ErrorKind::format, path_ + ": tensor '" + tensor.name + "' overlaps another");
        }
        if (tensor.data > expected) {
            throw Error(ErrorKind::format, path_ + ": unused bytes before tensor '" + tensor.name + "'");
        }
        expected = tensor.data + tensor.size;
    }
    if (expected != data + data_size) {
        throw Error(ErrorKind::format, path_ + ": unused bytes after the last tensor");
    }
    for (size_t i = 0; i < tensors_.size(); i++) {
        index_.emplace(tensors_[i].name, i);
    }
}

const SafetensorsTensor * SafetensorsReader::find(std::string_view name) const {
    const auto it = index_.find(std::string(name));
    return it == index_.end() ? nullptr : &tensors_[it->second];
}

const SafetensorsTensor & SafetensorsReader::get(std::string_view name) const {
    const SafetensorsTensor * tensor = find(name);
    if (!tensor) {
        throw Error(ErrorKind::format, path_ + ": tensor '" + std::string(name) + "' is missing");
    }
    return *tensor;
}

const SafetensorsTensor & SafetensorsReader::get(std::string_view name, const std::vector<int64_t> & shape) const {
    const SafetensorsTensor & tensor = get(name);
    if (tensor.shape != shape) {
        throw Error(ErrorKind::format, path_ + ": tensor '" + tensor.name + "' has shape " +
                                           format_shape(tensor.shape) + ", expected " + format_shape(shape));
    }
    return tensor;
}

std::vector<float> SafetensorsReader::read_f32(std::string_view name) const {
    const SafetensorsTensor & tensor = get(name);
    std::vector<float>        values(static_cast<size_t>(tensor.n_elements()));
    safetensors_to_f32(tensor, 0, tensor.n_elements(), values.data());
    return values;
}

void SafetensorsReader::release_pages(const void * data, size_t size) const {
    file_.drop(size_t(static_cast<const uint8_t *>(data) - file_.data()), size);
}

} // namespace penelope
