// Interface between a layer and the state of its sequences: the KV cache of an attention layer, the recurrent state of
// a recurrent one (Qwen3.5's delta nets). Implementations: model/sequence_cache.h.
//
// One rule for both. A batch that writes positions r .. r + n - 1 of a sequence
//   - reads the state of positions before r and nothing else;
//   - overwrites everything at r and after;
//   - leaves everything before r as it is, so that positions r, r + 1, ... can be computed again and again from the
//     same past (every latent step does that).
// A KV cache supports this for any r. A recurrent state has no positions to return to, so states are stored at the
// positions that are needed again. Training has all of them as nodes. Inference stores two: after the prompt
// (StateSlot::prompt_end), from which every latent step and the final pass start, and after the newest rows
// (StateSlot::current), from which decoding goes on.
//
// A layer only passes its segment. It does not know which method runs it, nor how often.
#pragma once

#include "arch/row_layout.h"
#include "graph/ops.h"

#include <vector>

namespace penelope {

struct Kv {
    Node k; // [head_dim * n_head_kv, n_kv]
    Node v;
};

// Shape of the state of one layer, per sequence.
struct StateShape {
    bool                 has_kv = true;
    std::vector<int64_t> recurrent; // elements (F32) of each tensor of the recurrent state
};

class SequenceState {
  public:
    virtual ~SequenceState() = default;

    // Context size in tokens; 0 in training, where sequences end with their last row.
    virtual int n_ctx() const { return 0; }

    // KV cache of layer il. k, v: [head_dim * n_head_kv, n_rows], all rows of the batch.
    virtual void write(Graph & g, int il, Node k, Node v, const RowLayout & rows) = 0;
    virtual Kv   read(Graph & g, int il, const Segment & segment)                 = 0;
    // Rows [0, n_kv) of every stream, [head_dim * n_head_kv, n_kv, streams], for batched attention. SequenceCache only.
    virtual Kv read_all(Graph & g, int il, int n_kv);

    // Recurrent state of layer il, one segment at a time, as flat F32 tensors. Before the segment's first row (at
    // position 0: zeros; SequenceNodes returns an empty list instead, which saves computing with zeros) ...
    virtual std::vector<Node> read_recurrent(Graph & g, int il, const Segment & segment) = 0;
    // ... and after its last one.
    virtual void write_recurrent(Graph & g, int il, const Segment & segment, const std::vector<Node> & state) = 0;
};

} // namespace penelope
