#include "graph/activation_checkpoint.h"

#include "graph/tape.h"

#include <memory>

namespace penelope {

namespace {

// RAII: operations record on `tape` while this object lives.
class TapeScope {
  public:
    TapeScope(Graph & g, Tape & tape) : g_(g), before_(g.set_tape(&tape)) {}
    ~TapeScope() { g_.set_tape(before_); }
    TapeScope(const TapeScope &)             = delete;
    TapeScope & operator=(const TapeScope &) = delete;

  private:
    Graph & g_;
    Tape *  before_;
};

// RAII for the recomputation: no layer marks, the same dropout masks.
class RecomputeScope {
  public:
    RecomputeScope(Graph & g, int64_t draw) : g_(g), before_(g.set_recomputing(true)), draw_(g.set_next_draw(draw)) {}
    ~RecomputeScope() {
        g_.set_recomputing(before_);
        g_.set_next_draw(draw_);
    }
    RecomputeScope(const RecomputeScope &)             = delete;
    RecomputeScope & operator=(const RecomputeScope &) = delete;

  private:
    Graph & g_;
    bool    before_;
    int64_t draw_;
};

} // namespace

Node checkpoint_activations(Graph & g, const std::function<Node()> & build) {
    Tape * outer = g.tape();
    if (!outer) {
        return build();
    }
    const int64_t draw = g.set_next_draw(0);
    g.set_next_draw(draw);

    // The first tape only lists what was recorded. Its backward functions are dropped, so they keep no activations
    // alive.
    Tape first(outer);
    Node result = nullptr;
    {
        TapeScope tape_scope(g, first);
        result = build();
    }
    const std::vector<Node> recorded = first.recorded();
    if (recorded.empty()) {
        return result;
    }
    outer->record(recorded, [build, recorded, draw](Graph & graph, const std::vector<Node> & gradients) {
        Tape second(graph.tape());
        {
            TapeScope      tape_scope(graph, second);
            RecomputeScope recompute_scope(graph, draw);
            build();
        }
        const std::vector<Node> recomputed = second.recorded();
        GGML_ASSERT(recomputed.size() == recorded.size());
        TapeScope tape_scope(graph, second);
        second.backward(graph, recomputed, gradients);
    });
    return result;
}

} // namespace penelope
