// The batch of a call to run_layers(), as llama_batch is in llama.cpp: which rows of the activation matrix belong to
// which sequence and position. Consecutive rows of one sequence form a segment. A stream is a slot of the cache that
// holds one sequence; its row r holds position r.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace penelope {

// Where to read or write the recurrent state of a sequence; see arch/sequence_state.h.
enum class StateSlot {
    current,    // state after the newest rows
    prompt_end, // state after the prompt
    discard,    // do not store it: it is never read
};

struct Segment {
    int       first; // first row in the activation matrix
    int       count;
    int       stream; // id of the sequence
    int       row;    // position of its first row in the sequence
    int       n_kv;   // attention reads rows [0, n_kv) of the sequence; the mask is causal
    Node      mask;   // [n_kv, count] F16 of 0 and -inf; null: nothing is masked
    StateSlot from = StateSlot::current, to = StateSlot::current;
    // F32 [1], number of rows that are not padding: a recurrent layer has no mask and must skip the others. Null: all.
    Node n_valid = nullptr;
    // Attention pads the queries to this many rows (so does the mask) to get the kernel for long prompts. 0: no
    // padding.
    int n_queries = 0;
};

// Batched attention: one attention node over all streams of the cache instead of one node per sequence. Needs equally
// many rows per sequence.
struct BatchedAttention {
    int  count         = 0;       // rows per sequence; 0: one attention node per segment
    int  n_kv          = 0;       // attention reads rows [0, n_kv) of each stream
    Node mask          = nullptr; // F16 [n_kv, count, 1, streams]; streams outside the batch are masked
    Node row_of_stream = nullptr; // I32 [streams], index of the stream's sequence in the batch; arbitrary outside
    Node stream_of_row = nullptr; // I32 [sequences], the inverse
};

struct RowLayout {
    Node                 positions  = nullptr; // I32 [n_rows]
    Node                 cache_rows = nullptr; // I64 [n_rows], row of the KV cache (SequenceCache only)
    std::vector<Segment> segments;
    BatchedAttention     batched;
};

// The rows whose output is needed after the last layer (inp_out_ids in llama.cpp). At the other rows the last layer
// only computes keys and values.
struct OutputRows {
    int                  first     = 0;       // rows [first, first + count) ...
    int                  count     = 0;       // (0: none)
    Node                 index     = nullptr; // ... or, if set, these rows: I32 [n]
    Node                 positions = nullptr; // I32, positions of the output rows
    std::vector<Segment> segments;            // Segment::first counts output rows
    BatchedAttention     batched;
};

// Tells dropout which sequence and position each row of the following matrices has.
void set_dropout_rows(Graph & g, const std::vector<Segment> & segments);

} // namespace penelope
