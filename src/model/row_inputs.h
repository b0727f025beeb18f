// The inputs that tell a graph which rows it works on: positions, places in the cache, causal masks. Shapes are fixed when
// the graph is built; fill() gives the numbers of the questions at hand.
#pragma once

#include "arch/rows.h"
#include "model/sequence_cache.h"

#include <string>
#include <vector>

namespace penelope {

// A stretch of rows of one sequence. Row i of it stands at place `row` + i and sees places 0 .. row + i.
struct Stretch {
    int stream;
    int row;
    int count;  // rows in the graph
    int n_kv;   // places looked at, at least row + count unless padded
    int n_real; // rows that are not padding
    // Which recurrent state it goes on from and where it leaves its own; see arch/sequence_state.h.
    Hold from = Hold::tip, to = Hold::tip;
};

// A stretch without padding.
inline Stretch stretch(int stream, int row, int count) {
    return { stream, row, count, row + count, count, Hold::tip, Hold::tip };
}

class RowInputs {
  public:
    // g outlives them. exact: the stretches of fill() will be these very ones, so that a mask which hides nothing can be left out.
    RowInputs(Graph & g, const std::string & name, const std::vector<Stretch> & stretches, bool exact);

    const Rows & rows() const { return rows_; }
    int          n_rows() const { return n_rows_; }

    // Stretches [first, first + count) as rows with inputs of their own, which fill() fills too.
    Rows part(Graph & g, int first, int count);

    // Same counts and n_kv as at construction. cache: null when keys and values are nodes.
    void fill(const std::vector<Stretch> & stretches, const SequenceCache * cache) const;

  private:
    struct Part {
        int  first; // row
        Rows rows;
    };
    Graph &           graph_;
    std::string       name_;
    Rows              rows_;
    int               n_rows_ = 0;
    std::vector<Part> parts_;
};

} // namespace penelope
