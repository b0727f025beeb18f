// The table of an architecture's tensors: for each its name and shape in GGUF and at Hugging Face, how rows and values differ
// between the two, what it is for, and where the builders of the graph look for it. Loader, converter, exporter, LoRA, trainer,
// new and random backbones are all fed from it; no tensor is named anywhere else.
#pragma once

#include "graph/ops.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

enum class TensorRole {
    table,      // rows are looked up
    projection, // a matrix that LoRA adapts
    matrix,     // a matrix that training with LoRA leaves alone
    vector,     // norms, biases and the like: always F32
    constant,   // made from the configuration, never trained
};

// A permutation of the rows (or columns) of a tensor between the two formats.
struct TensorPermutation {
    // Inside each head: pairs (i, i + head/2) become neighbours (2i, 2i + 1), as ggml's plain rotation wants them.
    static TensorPermutation rotary_pairs(int64_t head);
    // After `first` rows that stay: heads grouped by the key head they share (group * per_group + i) become tiled
    // (i * n_groups + group).
    static TensorPermutation tiled_heads(int64_t head, int64_t n_groups, int64_t per_group, int64_t first = 0);

    bool    is_same() const { return kind == Kind::same; }
    int64_t hf_of_gguf(int64_t row) const; // the HF row that becomes this GGUF row
    int64_t gguf_of_hf(int64_t row) const;

    enum class Kind { same, rotary_pairs, tiled_heads };
    Kind    kind = Kind::same;
    int64_t head = 0, n_groups = 0, per_group = 0, first = 0;
};

// What GGUF stores instead of Hugging Face's value x.
enum class ValueTransform {
    same,
    one_plus,  // 1 + x: norms that scale by 1 + weight
    minus_exp, // -exp(x): decay rates kept as logarithms
};
float gguf_value(ValueTransform value, float hf);
// The inverse: of all numbers that gguf_value() turns into this one the shortest, so that a checkpoint in BF16 comes back as it was.
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
    bool                 writes_residual = false; // its output is added to the residual stream
    float                start           = 1.0f;  // of a vector in a backbone made from nothing
    int                  layer           = -1;    // -1: of none

    Node *   node   = nullptr; // where the graph looks for it
    Linear * linear = nullptr; // of a matrix; node is its weight

    bool                 is_matrix() const { return role == TensorRole::projection || role == TensorRole::matrix; }
    std::vector<int64_t> checkpoint_shape() const;
};

// Rows of the table under a common prefix. The functions return the row just added for whatever a caller wants to say of it.
class TensorTable {
  public:
    // norms: how the weights of all norms are stored.
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
    // Whole names.
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
