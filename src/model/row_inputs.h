// The inputs that tell a graph which rows it works on: positions, places in the cache, causal masks. Shapes are fixed when
// the graph is built; fill() gives the numbers of the questions at hand.
#pragma once

#include "arch/row_layout.h"
#include "model/sequence_cache.h"

#include <string>
#include <vector>

namespace penelope {

// A stretch of rows of one sequence. Row i of it stands at place `row` + i and sees places 0 .. row + i.
struct SeqRange {
    int stream;
    int row;
    int count;   // rows in the graph
    int n_kv;    // places looked at, at least row + count unless padded
    int n_valid; // rows that are not padding
    // Which recurrent state it goes on from and where it leaves its own; see arch/sequence_state.h.
    StateSlot from = StateSlot::current, to = StateSlot::current;
    // Rows attention is asked at least: it has other kernels for many rows than for few, and a part of a prompt must meet those of
    // the whole.
    int n_queries = 0;
    // Places at the front of the sequence that hold nothing: those after them do not see them, and positions count from there.
    int n_left_pad = 0;
};

// A stretch without padding.
inline SeqRange seq_range(int stream, int row, int count) {
    return { stream, row, count, row + count, count, StateSlot::current, StateSlot::current };
}

// What the shape of a graph on these stretches depends on, as text; not the sequences, which it can be moved to.
std::string      shape_key(const std::string & kind, const std::vector<SeqRange> & ranges);
std::vector<int> streams_of(const std::vector<SeqRange> & ranges);

class RowInputs {
  public:
    // g outlives them. exact: the stretches of fill() will be these very ones, so that a mask which hides nothing can be left out.
    // n_streams: of a cache whose sequences can be attended to in one go; done where enough of them take part with equally many rows.
    RowInputs(Graph & g, const std::string & name, const std::vector<SeqRange> & ranges, bool exact, int n_streams = 0);

    const RowLayout & rows() const { return rows_; }
    int               n_rows() const { return n_rows_; }

    // Stretches [first, first + count) as rows with inputs of their own, which fill() fills too.
    RowLayout subset(Graph & g, int first, int count);

    // Same counts and n_kv as at construction. cache: null when keys and values are nodes.
    void fill(const std::vector<SeqRange> & ranges, const SequenceCache * cache) const;

  private:
    void fill_batched(const std::vector<SeqRange> & ranges) const;

    struct Subset {
        int       first; // row
        RowLayout rows;
    };
    Graph &             graph_;
    std::string         name_;
    RowLayout           rows_;
    int                 n_rows_ = 0;
    Node                mask_   = nullptr; // of all abreast
    std::vector<Subset> subsets_;
};

} // namespace penelope
