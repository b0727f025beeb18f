// The batch of a call to run_layers(), as llama_batch is in llama.cpp: which rows of the activation matrix belong to
// which sequence and position. Consecutive rows of one sequence form a segment.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace penelope {

// A range in a graph: where its rows are in the activation matrix, and its inputs. A cached graph runs for other ranges
// of the same shape (shape_key() in model/row_inputs.h), so a layer may use n_valid and n_left_pad through the inputs
// alone.
struct Segment : SeqRange {
    int  first = 0;       // first row in the activation matrix
    Node mask  = nullptr; // F16 [n_kv, max(count, n_queries)] of 0 and -inf, causal; null: nothing is masked
    // F32 [1], n_valid: a recurrent layer has no mask and must skip the padding. Null: no padding.
    Node valid_count = nullptr;
    // The mask of layers with a sliding window; the same as `mask` if the window hides nothing.
    Node window_mask = nullptr;
};

// Batched attention: one attention node over all streams of the cache instead of one node per sequence. Needs equally
// many rows per sequence.
struct BatchedAttention {
    int  count         = 0;       // rows per sequence; 0: one attention node per segment
    int  n_kv          = 0;       // attention reads rows [0, n_kv) of each stream
    Node mask          = nullptr; // F16 [n_kv, count, 1, streams]; streams outside the batch are masked
    Node window_mask   = nullptr; // of layers with a sliding window
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
