#include "gguf/part.h"

#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "gguf/header_check.h"
#include "gguf/keys.h"
#include "gguf/split_name.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <unordered_map>

namespace penelope {

namespace {

// What a part says about the model it belongs to.
struct SplitKeys {
    uint32_t number    = 1; // from 1; the key split.no counts from 0
    uint32_t count     = 1;
    uint32_t n_tensors = 0; // of all parts
};

// 0 if the key is missing or no integer of 16 or 32 bits: split.no and split.count are u16, split.tensors.count is i32.
uint32_t integer_key(const GgufPart & part, const char * key) {
    const int64_t id = gguf_find_key(part.gguf.get(), key);
    switch (id < 0 ? GGUF_TYPE_STRING : gguf_get_kv_type(part.gguf.get(), id)) {
        case GGUF_TYPE_UINT16: return gguf_get_val_u16(part.gguf.get(), id);
        case GGUF_TYPE_UINT32: return gguf_get_val_u32(part.gguf.get(), id);
        case GGUF_TYPE_INT32: return uint32_t(std::max(0, gguf_get_val_i32(part.gguf.get(), id)));
        default: return 0;
    }
}

SplitKeys split_keys(const GgufPart & part) {
    SplitKeys keys;
    keys.count     = std::max(1u, integer_key(part, keys::split_count));
    keys.number    = keys.count > 1 ? integer_key(part, keys::split_number) + 1 : 1;
    keys.n_tensors = integer_key(part, keys::split_tensors_count);
    return keys;
}

[[noreturn]] void fail(const std::string & path, const std::string & why, const std::string & hint,
                       ErrorKind kind = ErrorKind::format) {
    throw Error(kind, in_quotes(path, 1024) + ": " + why, hint);
}

std::string numbered(uint32_t number, uint32_t count) {
    return "part " + std::to_string(number) + " of " + std::to_string(count);
}

// The prefix of the parts' names, from the name of the first.
std::string prefix_of_first(const std::string & path, const SplitKeys & keys) {
    const std::optional<SplitName> name  = parse_split_name(path);
    const std::string              first = split_path(name ? name->prefix : "NAME", 1, int(keys.count));
    if (keys.number != 1) {
        fail(path, "is " + numbered(keys.number, keys.count) + " of a model, expected the first",
             "give " + (name ? first : "the part named " + first) + "; the others are found beside it");
    }
    if (!name || name->number != 1 || uint32_t(name->count) != keys.count) {
        fail(path, "is " + numbered(1, keys.count) + " of a model, but is not named so",
             "name the parts as llama-gguf-split does, this one " + first);
    }
    return name->prefix;
}

constexpr const char * foreign_hint = "fetch or make all parts of the model again";

void check_belongs(const GgufPart & part, const SplitKeys & first, uint32_t number) {
    const SplitKeys     found = split_keys(part);
    const std::string & path  = part.file.path();
    if (found.count != first.count || found.number != number) {
        fail(path,
             "expected " + numbered(number, first.count) + ", found " +
                 (found.count > 1 ? numbered(found.number, found.count) : "a model in one file"),
             foreign_hint);
    }
    if (found.n_tensors != first.n_tensors) {
        fail(path,
             "is a part of another model: of " + std::to_string(found.n_tensors) + " tensors, the first part is of " +
                 std::to_string(first.n_tensors),
             foreign_hint);
    }
}

void check_tensors(const std::vector<GgufPart> & parts, const SplitKeys & keys) {
    std::unordered_map<std::string_view, const GgufPart *> owners;
    for (const GgufPart & part : parts) {
        for (const GgufTensor & tensor : part.tensors) {
            const auto [owner, is_new] = owners.emplace(tensor.name, &part);
            if (!is_new) {
                fail(part.file.path(),
                     "tensor " + in_quotes(tensor.name) + " is already in " +
                         in_quotes(owner->second->file.path(), 1024),
                     foreign_hint);
            }
        }
    }
    if (owners.size() != keys.n_tensors) {
        fail(parts.front().file.path(),
             "expected " + std::to_string(keys.n_tensors) + " tensors in " + std::to_string(parts.size()) +
                 " parts, found " + std::to_string(owners.size()),
             foreign_hint);
    }
}

} // namespace

GgufPart open_part(const std::string & path, const ByteView & bytes) {
    log_route_ggml();
    constexpr uintptr_t alignment = 8; // the smallest that a tensor in a file has
    if (reinterpret_cast<uintptr_t>(bytes.data) % alignment != 0) {
        fail(path, "its address in memory is not a multiple of 8", "copy the file into memory of malloc",
             ErrorKind::usage);
    }
    GgufPart           part{ bytes.data ? MappedFile::borrow(path, bytes) : MappedFile::open(path), nullptr, {} };
    const MappedFile & file       = part.file;
    const size_t       data_begin = check_gguf_header(path, file.data(), file.size());
    try {
        // Only the header is handed over: with no_alloc and no tensor context ggml reads nothing else.
        part.gguf.reset(gguf_init_from_buffer(file.data(), file.size(), { /*no_alloc*/ true, /*ctx*/ nullptr }));
    } catch (const std::bad_alloc &) {
        throw Error(ErrorKind::memory,
                    in_quotes(path, 1024) + ": not enough memory for a header of " + format_bytes(data_begin));
    }
    const gguf_context * gguf = part.gguf.get();
    if (gguf == nullptr || gguf_get_data_offset(gguf) != data_begin) {
        fail(path, "ggml cannot read its header", "run again with -v for ggml's own message");
    }
    const int64_t n_tensors = gguf_get_n_tensors(gguf);
    part.tensors.reserve(static_cast<size_t>(n_tensors));
    for (int64_t i = 0; i < n_tensors; ++i) {
        GgufTensor tensor{};
        tensor.name   = gguf_get_tensor_name(gguf, i);
        tensor.type   = gguf_get_tensor_type(gguf, i);
        tensor.n_dims = 1;
        std::memcpy(tensor.ne, gguf_get_tensor_ne(gguf, i), sizeof(tensor.ne));
        for (int j = 1; j < GGML_MAX_DIMS; ++j) {
            tensor.n_dims = tensor.ne[j] > 1 ? j + 1 : tensor.n_dims;
        }
        tensor.size   = gguf_get_tensor_size(gguf, i);
        tensor.offset = data_begin + gguf_get_tensor_offset(gguf, i);
        tensor.data   = file.data() + tensor.offset;
        part.tensors.push_back(std::move(tensor));
    }
    return part;
}

std::vector<GgufPart> open_parts(const std::string & path, const ByteView & bytes) {
    std::vector<GgufPart> parts;
    parts.push_back(open_part(path, bytes));
    const SplitKeys keys = split_keys(parts.front());
    if (bytes.data && keys.count > 1) {
        fail(path, "is " + numbered(keys.number, keys.count) + " of a model, and in memory",
             "give the path of the first part, or a model in one file");
    }
    if (keys.count == 1) {
        return parts;
    }
    const std::string prefix = prefix_of_first(path, keys);
    for (uint32_t number = 2; number <= keys.count; ++number) {
        const std::string name = split_path(prefix, int(number), int(keys.count));
        if (!std::filesystem::exists(name)) {
            fail(name, numbered(number, keys.count) + " of the model is missing",
                 "all parts belong into one directory; fetch this one", ErrorKind::not_found);
        }
        parts.push_back(open_part(name));
        check_belongs(parts.back(), keys, number);
    }
    check_tensors(parts, keys);
    return parts;
}

} // namespace penelope
