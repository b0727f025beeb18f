// Writes a GGUF file: keys first, then tensors announced with their final type and shape, then their data one at a time
// in the announced order. Memory use is that of one tensor. The file is written beside its target and renamed by
// finish(); without finish() (error, interrupt) nothing is left behind. An existing target needs `force`.
#pragma once

#include "ggml.h"
#include "gguf.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

class GgufReader;

class GgufWriter {
  public:
    GgufWriter(std::string path, bool force);
    ~GgufWriter();
    GgufWriter(const GgufWriter &)             = delete;
    GgufWriter & operator=(const GgufWriter &) = delete;

    void set_u32(std::string_view key, uint32_t value);
    void set_i32(std::string_view key, int32_t value);
    void set_f32(std::string_view key, float value);
    void set_bool(std::string_view key, bool value);
    void set_str(std::string_view key, std::string_view value);
    void set_str_array(std::string_view key, const std::vector<std::string> & values);
    void set_i32_array(std::string_view key, const std::vector<int32_t> & values);
    void set_f32_array(std::string_view key, const std::vector<float> & values);
    void set_bool_array(std::string_view key, const std::vector<bool> & values);
    void remove(std::string_view key);
    // All of them but general.alignment, which this writer leaves at its default, and split.*, because it writes one
    // file; later set_* calls replace.
    void copy_keys(const GgufReader & source);

    // Announces a tensor. ne in ggml order.
    void add_tensor(const std::string & name, ggml_type type, const std::vector<int64_t> & ne);

    // Writes the header; after this no key or tensor can be added.
    void begin_data();
    // The data of the next announced tensor; size must be ggml_row_size(type, ne0) * rows.
    void write_tensor(const std::string & name, const void * data, size_t size);
    // The same in parts of any size, one after the other, for tensors that never exist as a whole in memory.
    void write_chunk(const std::string & name, const void * data, size_t size);
    // Flushes, checks that every tensor came, reads the file back, renames it into place. before_rename is called
    // before the renaming, with the path the whole file has until then; when it throws there is no new file.
    using BeforeRename = std::function<void(const std::string & path)>;
    void finish(const BeforeRename & before_rename = {});

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace penelope
