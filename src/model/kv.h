// Keys and values of the sequences: where a layer puts them and what its attention may read.
//
// Both stores follow one rule: writing rows at place r of a sequence replaces whatever stood at r and after it, and never
// touches what stands before. KvCache keeps them on the device across graphs (inference). KvNodes keeps them as nodes of the
// graph being built, so that gradients flow through them (training).
#pragma once

#include "graph/ops.h"
#include "model/config.h"
#include "model/rows.h"

#include <map>
#include <vector>

namespace penelope {

struct Kv {
    Node k; // [head_dim * n_head_kv, n_kv]
    Node v;
};

class KvStore {
  public:
    virtual ~KvStore() = default;
    // k, v: [head_dim * n_head_kv, n_rows] of all rows of one call at layer il.
    virtual void write(Graph & g, int il, Node k, Node v, const Rows & rows) = 0;
    virtual Kv   read(Graph & g, int il, const Segment & segment)            = 0;
};

class KvCache : public KvStore {
  public:
    // n_rows per sequence. Throws Error(memory) with both sizes when it does not fit, Error(usage) for a type the shape forbids.
    KvCache(const ModelConfig & config, int n_streams, int n_rows, ggml_type type, const Backend & backend);

    void write(Graph & g, int il, Node k, Node v, const Rows & rows) override;
    Kv   read(Graph & g, int il, const Segment & segment) override;

    // What cache_rows must hold for a row of a sequence; spare_row() is a place nobody reads, for padding.
    int64_t cache_row(int stream, int row) const { return int64_t(stream) * stride_ + row; }
    int64_t spare_row(int stream) const { return cache_row(stream, n_rows_); }

    int       n_rows() const { return n_rows_; }
    int       n_streams() const { return n_streams_; }
    ggml_type type() const { return type_; }
    size_t    n_bytes() const;
    // Rows [0, n) of one layer of a sequence as stored, for tests and tools.
    std::vector<uint8_t> bytes(int il, int stream, int n) const;

    static size_t bytes_per_row(const ModelConfig & config, ggml_type type);

  private:
    int                     n_streams_, n_rows_, stride_;
    ggml_type               type_;
    ggml_context_ptr        ctx_;
    ggml_backend_buffer_ptr buffer_;
    std::vector<Kv>         layers_; // [head_dim * n_head_kv, stride * n_streams]
};

class KvNodes : public KvStore {
  public:
    void write(Graph & g, int il, Node k, Node v, const Rows & rows) override;
    Kv   read(Graph & g, int il, const Segment & segment) override;

  private:
    struct Part {
        int row, count;
        Kv  kv;
    };
    std::map<std::pair<int, int>, std::vector<Part>> parts_; // by (layer, stream), in order of rows
};

} // namespace penelope
