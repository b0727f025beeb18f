// A graph looks at what sequences left through views of the cache, each at the place of its sequence. Moving these views lets it
// work on other sequences, so that a graph is built once per shape and not once per set of sequences.
#pragma once

#include "model/sequence_cache.h"

#include <vector>

namespace penelope {

struct StreamView {
    Node   view;
    int    stream;       // where it looks now
    size_t stream_bytes; // from one sequence to the next
};

// Those of a finished graph; none when the cache holds a single sequence.
std::vector<StreamView> find_stream_views(const Graph & g, const SequenceCache & cache);

// Views of sequence from[i] look at to[i] afterwards. The entries of each list differ.
void retarget_views(std::vector<StreamView> & views, const std::vector<int> & from, const std::vector<int> & to);

} // namespace penelope
