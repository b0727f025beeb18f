// The tensor table of an architecture: for each tensor its name and shape in GGUF and at Hugging Face, how rows and
// values are converted between the two, its role, and the pointer the graph builder reads. Loader, converter, exporter,
// LoRA, trainer and random initialization all use this table; no tensor is named anywhere else.
#pragma once

#include "graph/ops.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

enum class TensorRole {
    table,      // read by get_rows: the embedding
    projection, // a matrix that LoRA adapts
    matrix,     // a matrix that LoRA does not adapt
    vector,     // norms, biases and the like: always F32
    constant,   // computed from the hyperparameters, never trained
};

// A permutation of the rows (or columns) of a tensor between the two formats.
struct TensorPermutation {
    // Inside each head: pairs (i, i + head/2) become adjacent (2i, 2i + 1), as GGML_ROPE_TYPE_NORMAL expects.
    static TensorPermutation rotary_pairs(int64_t head);
    // After `first` unchanged rows: heads grouped by their key head (group * per_group + i) become tiled (i * n_groups
    // + group).
    static TensorPermutation tiled_heads(int64_t head, int64_t n_groups, int64_t per_group, int64_t first = 0);

    bool    is_same() const { return kind == Kind::same; }
    int64_t hf_of_gguf(int64_t row) const; // the HF row that becomes this GGUF row
    int64_t gguf_of_hf(int64_t row) const;

    enum class Kind { same, rotary_pairs, tiled_heads };
    Kind    kind = Kind::same;
    int64_t head = 0, n_groups = 0, per_group = 0, first = 0;
};

// Conversion of a Hugging Face value x to GGUF.
enum class ValueTransform {
    same,
    one_plus,  // 1 + x: norms that scale by 1 + weight
    minus_exp, // -exp(x): decay rates stored as logarithms
};
float gguf_value(ValueTransform value, float hf);
// The inverse. Of all values that gguf_value() maps to this one, the one with the shortest mantissa, so that a BF16
// checkpoint survives the round trip.
float hf_value(ValueTransform value, float gguf);

struct TensorSpec {
    std::string          gguf; // "blk.0.attn_q.weight"
    std::string          hf;   // "model.layers.0.self_attn.q_proj.weight"; empty: has no counterpart
    std::vector<int64_t> ne;   // ggml order
    TensorRole           role = TensorRole::vector;
    TensorPermutation    rows = {}, columns = {};
    ValueTransform       value           = ValueTransform::same;
    std::vector<int64_t> hf_shape        = {};    // row-major; empty: ne reversed
    bool                 is_optional     = false; // a file may lack it
    bool                 writes_residual = false; // last matrix of a block: its output is added to the residual stream
    float                start           = 1.0f;  // initial value of a vector in a new backbone
    int                  layer           = -1;    // -1: not in a layer

    Node *   node   = nullptr; // set by the loader, read by the graph builder
    Linear * linear = nullptr; // for a matrix: node points to its weight

    bool                 is_matrix() const { return role == TensorRole::projection || role == TensorRole::matrix; }
    std::vector<int64_t> checkpoint_shape() const;
};

// Builder of the table. Names get a common prefix. Each function returns the new entry, so that the caller can set
// further fields.
class TensorTable {
  public:
    // norms: conversion of all norm weights.
    explicit TensorTable(ValueTransform norms = ValueTransform::same) : norms_(norms) {}

    void set_prefix(const std::string & gguf, const std::string & hf, int layer = -1) {
        gguf_prefix_ = gguf;
        hf_prefix_   = hf;
        layer_       = layer;
    }

    // Names without ".weight" and ".bias".
    TensorSpec & table(Node & node, const char * gguf, const char * hf, int64_t n_in, int64_t n_rows);
    TensorSpec & projection(Linear & layer, const char * gguf, const char * hf, int64_t n_in, int64_t n_out);
    TensorSpec & matrix(Linear & layer, const char * gguf, const char * hf, int64_t n_in, int64_t n_out);
    TensorSpec & bias(Linear & layer, const char * gguf, const char * hf, int64_t n_out);
    TensorSpec & norm(Node & node, const char * gguf, const char * hf, int64_t n);
    // Full names.
    TensorSpec & vector(Node & node, const char * gguf, const char * hf, std::vector<int64_t> ne);

    std::vector<TensorSpec> take() { return std::move(rows_); }

  private:
    TensorSpec & add(const std::string & gguf, const std::string & hf, std::vector<int64_t> ne, TensorRole role,
                     Node & node);

    ValueTransform          norms_;
    std::string             gguf_prefix_, hf_prefix_;
    int                     layer_ = -1;
    std::vector<TensorSpec> rows_;
};

} // namespace penelope
