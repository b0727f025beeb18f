// Consecutive rows of one sequence in a batch. A stream is a slot of the cache that holds one sequence; its row r holds
// position r.
#pragma once

#include <vector>

namespace penelope {

// Where to read or write the recurrent state of a sequence; see arch/sequence_state.h.
enum class StateSlot {
    current,    // state after the newest rows
    prompt_end, // state after the prompt
    discard,    // do not store it: it is never read
};

// Row i of the range has position row + i and attends to positions 0 .. row + i.
struct SeqRange {
    int stream;
    int row;
    int count;
    int n_kv    = row + count; // attention reads cache rows [0, n_kv)
    int n_valid = count;       // rows that are not padding
    // Slots the recurrent state is read from and written to.
    StateSlot from = StateSlot::current, to = StateSlot::current;
    // Minimum number of query rows for attention. Its kernels for many rows round differently than those for few; a
    // chunk of a prompt must use the kernel of the whole prompt.
    int n_queries = 0;
    // Left padding in rows: masked for the rows after it, and positions are counted from its end.
    int n_left_pad = 0;
};

} // namespace penelope
