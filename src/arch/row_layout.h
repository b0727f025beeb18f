// Which rows a call to run_layers works on. Several sequences may lie side by side in one matrix; each stretch of rows that
// attends together is a segment. Row r of a stream holds position r of that sequence.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace penelope {

// Where a store keeps the recurrent states of a sequence; see arch/sequence_state.h.
enum class StateSlot {
    current,    // what the newest rows left
    prompt_end, // what the prompt left
    discard,    // nowhere: nobody comes back to it
};

struct Segment {
    int       first; // its first row in the matrix
    int       count;
    int       stream; // the sequence it belongs to
    int       row;    // where its first row stands in the sequence
    int       n_kv;   // rows [0, n_kv) of the sequence are looked at; the mask hides those after its own
    Node      mask;   // [n_kv, count] F16 of 0 and -inf; null: all of them are seen
    StateSlot from = StateSlot::current, to = StateSlot::current;
    // F32 [1], how many rows are no padding: a recurrence has no mask and must not see the others. Null: all of them.
    Node n_valid = nullptr;
    // Rows attention is asked, zeros after its own: the mask has as many. 0: its own.
    int n_queries = 0;
};

// Sequences with equally many rows each, attended to in one go over all sequences of a cache: a node instead of one a sequence.
struct BatchedAttention {
    int  count = 0;       // rows of each sequence; 0: attention goes segment by segment
    int  n_kv  = 0;       // places looked at
    Node mask  = nullptr; // F16 [n_kv, count, 1, streams], hides all of those that take no part
    Node row_of_stream =
        nullptr; // I32 [streams], which sequence of the call a stream is; any for those that take no part
    Node stream_of_row = nullptr; // I32 [sequences], the way back
};

struct RowLayout {
    Node positions  = nullptr; // I32 [n_rows]
    Node cache_rows = nullptr; // I64 [n_rows], where a SequenceCache stores them; unused by SequenceNodes
    std::vector<Segment> segments;
    BatchedAttention     batched;
};

// The rows that are still needed after the last layer of a call; the others only leave their keys and values behind.
struct OutputRows {
    int                  first     = 0;       // a stretch of rows ...
    int                  count     = 0;       // (0: none at all)
    Node                 index     = nullptr; // ... or any rows, I32 [n]
    Node                 positions = nullptr; // I32 of the kept rows
    std::vector<Segment> segments;            // `first` counts kept rows
    BatchedAttention     batched;
};

// Random draws that follow are those of these rows, until others are named.
void set_dropout_rows(Graph & g, const std::vector<Segment> & segments);

} // namespace penelope
