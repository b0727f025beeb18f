#include "graph/recompute.h"

#include "graph/tape.h"

#include <memory>

namespace penelope {

namespace {

// Lets operations record on `tape` for as long as it lives.
class Recording {
  public:
    Recording(Graph & g, Tape & tape) : g_(g), before_(g.set_tape(&tape)) {}
    ~Recording() { g_.set_tape(before_); }
    Recording(const Recording &)             = delete;
    Recording & operator=(const Recording &) = delete;

  private:
    Graph & g_;
    Tape *  before_;
};

// Second time round: no marks, the same draws.
class Rebuilding {
  public:
    Rebuilding(Graph & g, int64_t draw) : g_(g), before_(g.set_rebuilding(true)), draw_(g.set_next_draw(draw)) {}
    ~Rebuilding() {
        g_.set_rebuilding(before_);
        g_.set_next_draw(draw_);
    }
    Rebuilding(const Rebuilding &)             = delete;
    Rebuilding & operator=(const Rebuilding &) = delete;

  private:
    Graph & g_;
    bool    before_;
    int64_t draw_;
};

} // namespace

Node recompute(Graph & g, const std::function<Node()> & build) {
    Tape * outer = g.tape();
    if (!outer) {
        return build();
    }
    const int64_t draw = g.set_next_draw(0);
    g.set_next_draw(draw);

    // The first tape only tells what was recorded: its rules are forgotten, and with them what they would keep.
    Tape first(outer);
    Node result = nullptr;
    {
        Recording recording(g, first);
        result = build();
    }
    const std::vector<Node> recorded = first.recorded();
    if (recorded.empty()) {
        return result;
    }
    outer->record(recorded, [build, recorded, draw](Graph & graph, const std::vector<Node> & gradients) {
        Tape second(graph.tape());
        {
            Recording  recording(graph, second);
            Rebuilding rebuilding(graph, draw);
            build();
        }
        const std::vector<Node> rebuilt = second.recorded();
        GGML_ASSERT(rebuilt.size() == recorded.size());
        Recording recording(graph, second);
        second.backward(graph, rebuilt, gradients);
    });
    return result;
}

} // namespace penelope
