// Reuses a graph for other sequences. A graph reads the cache through views at the offset of its stream; moving these
// views to another stream makes the same graph work there. So a graph is built once per shape, not once per set of
// streams.
#pragma once

#include "model/sequence_cache.h"

#include <vector>

namespace penelope {

struct StreamView {
    Node   view;
    int    stream;       // the stream it points to now
    size_t stream_bytes; // distance between two streams
};

// The views into the cache of a finished graph; empty when the cache has a single stream.
std::vector<StreamView> find_stream_views(const Graph & g, const SequenceCache & cache);

// Moves views of stream from[i] to stream to[i]. Neither list may contain a stream twice.
void retarget_views(std::vector<StreamView> & views, const std::vector<int> & from, const std::vector<int> & to);

} // namespace penelope
