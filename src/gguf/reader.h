// A GGUF file, opened once: typed access to its keys and a memory map of its tensor data. A model split over several
// files (NAME-00001-of-00003.gguf) is read as if it were one: keys of the first file, tensors of all.
//
// Contract: every accessor either returns what was asked for or throws an Error that names the file, the key or tensor,
// and what was expected. No content of the file, however damaged, reaches a ggml assert. The object is immutable after
// open() and may be read from several threads; spans and pointers stay valid as long as it lives.
#pragma once

#include "base/mapped_file.h"
#include "ggml.h"
#include "gguf.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

struct GgufTensor {
    std::string name;
    ggml_type   type;
    int64_t     ne[4]; // ggml order, fastest dimension first; 1 beyond n_dims
    int         n_dims;
    const void *
        data; // into the map, aligned like the file's general.alignment (32 unless the file says otherwise, at least 8)
    size_t size;   // bytes
    size_t offset; // bytes from the start of the file
    size_t i_file; // which file of a split model, from 0

    int64_t n_elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
};

class GgufReader {
  public:
    // All parts of a split model, given the first. bytes: the file is in memory already and used in place; `path` is
    // then only its name in messages. They stay unchanged as long as the reader lives. Throws Error(usage) unless their
    // address is a multiple of 8.
    static GgufReader open(const std::string & path, const ByteView & bytes = {});
    // This file alone, whatever it says about other parts.
    static GgufReader open_one_file(const std::string & path);

    GgufReader(GgufReader &&) noexcept;
    GgufReader & operator=(GgufReader &&) noexcept;
    ~GgufReader();

    const std::string &  path() const;      // of the first file
    size_t               file_size() const; // of all files
    size_t               n_files() const;
    const gguf_context * raw() const; // for copying whole sets of keys with gguf_set_kv

    // Keys. get_* throws when the key is missing or of another type; find_* gives nullopt when missing but still throws
    // on another type. Integers are accepted in any GGUF integer type that holds the value without loss.
    bool                       has(std::string_view key) const;
    uint32_t                   get_u32(std::string_view key) const;
    float                      get_f32(std::string_view key) const;
    std::string                get_str(std::string_view key) const;
    std::vector<std::string>   get_str_array(std::string_view key) const;
    std::vector<int32_t>       get_i32_array(std::string_view key) const; // also bool and other integer arrays
    std::optional<uint32_t>    find_u32(std::string_view key) const;
    std::optional<float>       find_f32(std::string_view key) const;
    std::optional<bool>        find_bool(std::string_view key) const;
    std::optional<std::string> find_str(std::string_view key) const;

    std::optional<std::vector<int32_t>> find_i32_array(std::string_view key) const;
    std::optional<std::vector<float>>   find_f32_array(std::string_view key) const;

    // Tensors.
    const std::vector<GgufTensor> & tensors() const; // in file order
    const GgufTensor *              find_tensor(std::string_view name) const;
    // Throws unless the tensor exists and has exactly this shape (missing trailing dimensions are 1).
    const GgufTensor & get_tensor(std::string_view name, const std::vector<int64_t> & ne) const;

    // Drops the pages of a mapped range that has been copied elsewhere.
    void release_pages(const GgufTensor & tensor) const;
    void release_pages(const GgufTensor & tensor, size_t offset, size_t size) const; // a part of the tensor's data

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    explicit GgufReader(std::unique_ptr<Impl> impl);
};

} // namespace penelope
