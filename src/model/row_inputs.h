// The batch inputs of a graph: positions, KV cache rows, causal masks. Their shapes are fixed when the graph is built;
// fill() sets their values before each run.
#pragma once

#include "arch/row_layout.h"
#include "model/sequence_cache.h"

#include <string>
#include <vector>

namespace penelope {

// Key of a graph cache: everything the shape of a graph depends on. Not the streams, because a graph can be moved to
// others (model/stream_views.h).
std::string      shape_key(const std::string & kind, const std::vector<SeqRange> & ranges);
std::vector<int> streams_of(const std::vector<SeqRange> & ranges);

class RowInputs {
  public:
    // g must outlive this object. config: of the model, which may have layers with a sliding window. exact: fill() will
    // get these same ranges, so a mask that hides nothing can be omitted. n_streams: streams of the cache if the device
    // supports batched attention, else 0. It is used when at least half of the streams are in the batch with equally
    // many rows.
    RowInputs(Graph & g, const std::string & name, const ModelConfig & config, const std::vector<SeqRange> & ranges,
              bool exact, int n_streams = 0);

    const RowLayout & rows() const { return rows_; }
    int               n_rows() const { return n_rows_; }

    // A layout of ranges [first, first + count) alone, with its own inputs, which fill() sets too.
    RowLayout subset(Graph & g, int first, int count);

    // Counts and n_kv must be those given to the constructor. cache: null in training (SequenceNodes).
    void fill(const std::vector<SeqRange> & ranges, const SequenceCache * cache) const;

  private:
    void fill_batched(const std::vector<SeqRange> & ranges) const;
    void fill_mask(Node mask, const SeqRange & range, int window) const;
    void fill_batched_mask(Node mask, const std::vector<SeqRange> & ranges, int window) const;
    // Whether the window hides positions that the causal mask does not.
    bool hides(const SeqRange & range) const { return window_ > 0 && range.n_kv > window_; }

    struct Subset {
        int       first; // row
        RowLayout rows;
    };
    Graph &             graph_;
    std::string         name_;
    RowLayout           rows_;
    int                 n_rows_ = 0;
    Node                mask_ = nullptr, window_mask_ = nullptr; // of batched attention
    int                 window_ = 0;                             // of the layers that have one
    std::vector<Subset> subsets_;
};

} // namespace penelope
