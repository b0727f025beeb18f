// What the sequences leave behind in each layer for the rows that come later: keys and values of every row in an attention
// layer, a state of fixed size in a recurrent one.
//
// One rule for both. A call writes rows at places r .. r + n - 1 of a sequence:
//   - it reads what the sequence left before place r, and nothing else;
//   - it replaces whatever stood at r and after;
//   - it keeps what stands before r, so that rows can be written at r again and again, each time from the same past.
// Keys and values obey it at every place. A recurrent state has no places to go back to, so a store keeps the states at the
// places a method comes back to: training keeps all of them as nodes, inference the end of the prompt (StateSlot::prompt_end) beside the
// running one (StateSlot::current), which is all that refinements, the final pass and decoding ever read.
//
// Layers only say which segment they are at; which method runs them, and how often, they never learn.
#pragma once

#include "arch/row_layout.h"
#include "graph/ops.h"

#include <vector>

namespace penelope {

struct Kv {
    Node k; // [head_dim * n_head_kv, n_kv]
    Node v;
};

// What one layer keeps per sequence.
struct StateShape {
    bool                 has_kv = true;
    std::vector<int64_t> recurrent; // numbers (F32) in each tensor of its recurrent state
};

class SequenceState {
  public:
    virtual ~SequenceState() = default;

    // Attention. k, v: [head_dim * n_head_kv, n_rows] of all rows of one call at layer il.
    virtual void write(Graph & g, int il, Node k, Node v, const RowLayout & rows) = 0;
    virtual Kv   read(Graph & g, int il, const Segment & segment)                 = 0;
    // Rows [0, n_kv) of every sequence: [head_dim * n_head_kv, n_kv, streams]. For stores that keep them side by side.
    virtual Kv read_all(Graph & g, int il, int n_kv);

    // Recurrence, segment by segment in order of rows: the tensors of the state before the segment's first row (flat F32; zeros
    // when nothing came before, for which a store of nodes gives none at all so that nothing is computed from them) ...
    virtual std::vector<Node> read_recurrent(Graph & g, int il, const Segment & segment) = 0;
    // ... and after its last one.
    virtual void write_recurrent(Graph & g, int il, const Segment & segment, const std::vector<Node> & state) = 0;
};

} // namespace penelope
