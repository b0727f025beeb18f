// Tensors on their way into a GGUF file: fetched in rows as F32, converted on all cores, written once and in order.
//
// Memory is a few slabs of output (see tensor_stream.cpp), whatever the size of a tensor: the source is expected to be
// a mapped file whose pages are given back as soon as they were used. A value that is not finite, or that the output
// type cannot hold, is an Error naming the tensor.
#pragma once

#include "ggml.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

class GgufWriter;

struct TensorJob {
    std::string          name;
    std::vector<int64_t> ne;   // ggml order; rows are runs of ne[0]
    ggml_type            type; // in the file

    // Fills `out` with rows [first, first + n). Called from several threads at once. Not used when `raw` or `f32` is
    // set.
    std::function<void(int64_t first, int64_t n, float * out)> read = nullptr;
    // The finished bytes, for tensors that keep their type.
    const void * raw = nullptr;
    // The rows themselves, where they are in memory or in a map as F32.
    const float * f32 = nullptr;
    // What each of the ne[0] inputs matters when rows are quantized; null: all the same.
    const float * importance = nullptr;
    // Rows [first, first + n) are not needed any more; may be empty.
    std::function<void(int64_t first, int64_t n)> release = nullptr;

    int64_t n_rows() const;
    size_t  row_size() const; // bytes in the file
    size_t  size() const;
};

struct StreamProgress {
    size_t      i_tensor;
    size_t      n_tensors;
    uint64_t    bytes_done; // of the output
    uint64_t    bytes_total;
    std::string name;
};

struct StreamOptions {
    int                                         n_threads = 0; // 0: all cores
    std::function<void(const StreamProgress &)> progress;      // called by the calling thread
    std::function<bool()>                       cancelled;     // polled; true ends with Error(cancelled)
};

// Throws Error(cancelled) when that was asked for.
void throw_if_cancelled(const std::function<bool()> & cancelled);

// Announces every tensor; keys may still be added until stream_tensors.
void declare_tensors(GgufWriter & writer, const std::vector<TensorJob> & jobs);
// begin_data() and all the data. finish() is left to the caller.
void stream_tensors(GgufWriter & writer, const std::vector<TensorJob> & jobs, const StreamOptions & options);

// A job over values in memory; `values` must outlive it.
TensorJob memory_job(std::string name, std::vector<int64_t> ne, ggml_type type, const float * values);

} // namespace penelope
