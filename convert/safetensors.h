// safetensors files: a mapped reader and a streaming writer.
//
// Contract of the reader: the header is checked completely (size, nesting, duplicate names, types, shapes, offsets
// without overlap, hole or truncation) before open() returns, so no later access can leave the file. Anything wrong is
// an Error that names the file and the tensor. Tensors are row-major with the slowest dimension first, as PyTorch
// writes them.
#pragma once

#include "base/mapped_file.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace penelope {

enum class SafetensorsType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean, f8_e4m3, f8_e5m2 };

const char * safetensors_type_name(SafetensorsType type); // as in the file: "F32", "BF16", ...
size_t       safetensors_type_size(SafetensorsType type); // bytes of one element

struct SafetensorsTensor {
    std::string          name;
    SafetensorsType      type;
    std::vector<int64_t> shape; // slowest dimension first; empty for a scalar
    const uint8_t *      data;  // into the map, not necessarily aligned
    size_t               size;  // bytes

    int64_t n_elements() const;
};

// Converts elements [first, first + n) of an F32, F16, BF16 or F64 tensor; other types are an Error.
void safetensors_to_f32(const SafetensorsTensor & tensor, int64_t first, int64_t n, float * out);

class SafetensorsReader {
  public:
    static SafetensorsReader open(const std::string & path);

    const std::string &                        path() const { return path_; }
    const std::map<std::string, std::string> & metadata() const { return metadata_; } // the "__metadata__" entry
    const std::vector<SafetensorsTensor> &     tensors() const { return tensors_; }   // in order of their data

    const SafetensorsTensor * find(std::string_view name) const;
    // Throw when it is missing; the second also when it has another shape.
    const SafetensorsTensor & get(std::string_view name) const;
    const SafetensorsTensor & get(std::string_view name, const std::vector<int64_t> & shape) const;
    std::vector<float>        read_f32(std::string_view name) const; // the whole tensor

    // Drops the pages of a part of the map that has been copied elsewhere.
    void release_pages(const void * data, size_t size) const;

  private:
    SafetensorsReader(std::string path, MappedFile file);
    void parse();

    std::string                             path_;
    MappedFile                              file_;
    std::map<std::string, std::string>      metadata_;
    std::vector<SafetensorsTensor>          tensors_;
    std::unordered_map<std::string, size_t> index_; // name -> position in tensors_
};

// Writes beside the target and renames in finish(); without finish() nothing is left behind. An existing target needs
// `force`. Tensors are announced first, then their bytes come in the same order, in parts of any size.
class SafetensorsWriter {
  public:
    SafetensorsWriter(const std::string & path, bool force);
    ~SafetensorsWriter();
    SafetensorsWriter(const SafetensorsWriter &)             = delete;
    SafetensorsWriter & operator=(const SafetensorsWriter &) = delete;

    void set_metadata(const std::string & key, const std::string & value);
    void add_tensor(const std::string & name, SafetensorsType type, const std::vector<int64_t> & shape);
    void begin_data();
    void write(const void * data, size_t size);
    void finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace penelope
