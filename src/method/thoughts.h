// Coconut and CODI, which feed hidden states back as input embeddings: a start row, K thoughts, an end row. Each
// thought is made from the state after the final norm at the row before it and enters as an input embedding; every pass
// goes through all layers. method/thought_steps.h runs them.
//   Coconut  the thought is that state
//   CODI     the thought is LayerNorm(W_out gelu(W_in state)), and the answer's prefix
//            is processed together with the end row
#pragma once

#include "method/method.h"
#include "sidecar/load_modules.h"

#include <optional>

namespace penelope {

struct ThoughtProjection {
    Linear    in, out; // [d, p], [p, d]
    LayerNorm norm;
};

struct ThoughtModules {
    Node                             token_rows = nullptr; // input embeddings of the start and end markers, [d, 2]
    std::optional<ThoughtProjection> projection;
};

// From the tensors of a file.
ThoughtModules coconut_modules(const ModuleNodes & nodes);
ThoughtModules codi_modules(const ModuleNodes & nodes);

class ThoughtMethod : public Method {
  public:
    // prefix: tokens every answer begins with; they are put after the end row instead of being generated. Nodes outlive
    // the method.
    ThoughtMethod(std::string name, const ThoughtModules & modules, int k_max, int k_default, Tokens prefix = {})
        : name_(std::move(name)), modules_(modules), k_max_(k_max), k_default_(k_default), prefix_(std::move(prefix)) {}

    std::string name() const override { return name_; }
    int         default_steps() const override { return k_default_; }
    int         max_steps() const override { return k_max_; }
    int         n_extra_rows(int n_steps) const override { return n_steps + 2 + int(prefix_.size()); }

    LatentSteps * steps(Context & context) const override;

    const ThoughtModules & modules() const { return modules_; }
    const Tokens &         prefix() const { return prefix_; }

  private:
    std::string    name_;
    ThoughtModules modules_;
    int            k_max_, k_default_;
    Tokens         prefix_;
};

// The next thought from the residual stream after the last layer, [d, n] -> [d, n].
Node next_thought(Graph & g, const Backbone & model, const ThoughtModules & modules, Node state);

// The passes before the end row; shared by inference and training.
//
// The first pass: embedded prompts side by side [d, n_prompt], followed by one start row per sequence. Returns the
// first thoughts [d, n], made from the start rows; null if they are not needed.
Node start_pass(Graph & g, const Backbone & model, const ThoughtModules & modules, Node prompt, int n_sequences,
                const RowLayout & rows, const OutputRows & start_rows, SequenceState & kv, bool need_thought);

// One pass per entry of `rows`, the first over `thought`. Returns the thoughts, [d, n] each; with need_next also the
// one that follows the last pass.
std::vector<Node> thought_passes(Graph & g, const Backbone & model, const ThoughtModules & modules, Node thought,
                                 const std::vector<RowLayout> & rows, SequenceState & kv, bool need_next);

} // namespace penelope
