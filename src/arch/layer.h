// Interface of a decoder layer: lists its tensors, declares its per-sequence state, builds its nodes.
#pragma once

#include "arch/config.h"
#include "arch/sequence_state.h"
#include "arch/tensor_table.h"

namespace penelope {

// Arguments of Layer::build() besides x.
struct LayerCall {
    const ModelConfig & config;
    RopeParams          rope; // of this layer
    int                 il;
    const RowLayout &   rows;
    SequenceState &     state;
    const OutputRows *  output_rows; // null: all rows

    bool has_no_output_rows() const { return output_rows && !output_rows->index && output_rows->count == 0; }
};

class Layer {
  public:
    virtual ~Layer() = default;

    virtual void       list_tensors(const ModelConfig & config, TensorTable & table) = 0;
    virtual StateShape state(const ModelConfig & config) const                       = 0;

    // x [n_embd, n_rows] -> the output rows. Without output rows it only updates the KV cache or recurrent state and
    // returns null. Marks one layer application.
    virtual Node build(Graph & g, const LayerCall & call, Node x) const = 0;
};

} // namespace penelope
