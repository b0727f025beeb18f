#include "latent/gold_memory.h"

#include "graph/tape.h"

namespace penelope {

namespace {

// No operation records a gradient for as long as it lives. With a tape there is one that watches nothing: recurrent
// layers write their states in another form for a tape than without one, and these go on from what the prompt left.
class Constant {
  public:
    explicit Constant(Graph & g) : g_(g), before_(g.tape()) {
        if (before_) {
            nothing_.set_host_kernels(before_->host_kernels());
            g_.set_tape(&nothing_);
        }
    }
    ~Constant() { g_.set_tape(before_); }
    Constant(const Constant &)             = delete;
    Constant & operator=(const Constant &) = delete;

  private:
    Graph & g_;
    Tape *  before_;
    Tape    nothing_;
};

} // namespace

Node gold_memory(Graph & g, const Backbone & model, const PenelopeModules & modules, const LatentShape & shape,
                 const GoldRows & gold, const RowLayout & memory_rows, SequenceState & kv) {
    const Constant constant(g);
    const int64_t  n = gold.ids->ne[0] / shape.n_memory;
    Node           z = gather_rows(g, concat_rows(g, { embed_tokens(g, model, gold.ids), modules.memory_anchor }),
                                   gold.index); // [d, m * n]
    Node           x = add(g, z, repeat_rows(g, modules.memory_group, n));
    g.expand(x);
    return run_layers(g, model, 0, shape.start, x, memory_rows, kv);
}

Node replace_memory(Graph & g, const GoldRows & gold, Node memory, Node gold_memory) {
    Node taken = ggml_mul(g.ctx(), gold_memory, gold.forced);
    return add(g, mul(g, memory, gold.own), taken);
}

} // namespace penelope
