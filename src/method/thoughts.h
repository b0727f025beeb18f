// Coconut and CODI, which feed hidden states back as input embeddings: a start row, K thoughts, an end row. Each
// thought is made from the state after the final norm at the row before it and enters as an input embedding; every pass
// goes through all layers. The whole is one graph.
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

    Prefill       prefill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const override;
    LatentSteps * steps(Context & context) const override;
    // The thoughts, and the logits at the end row, before any prefix.
    std::vector<StateTensor> states(Context & context, const Prompt & prompt, int n_steps) const override;

    const ThoughtModules & modules() const { return modules_; }
    const Tokens &         prefix() const { return prefix_; }

  private:
    struct Built;
    Built & run(Context & context, const std::vector<Prompt> & prompts, int n_steps, const Tokens & prefix,
                int & applications) const;

    std::string    name_;
    ThoughtModules modules_;
    int            k_max_, k_default_;
    Tokens         prefix_;
};

// The next thought from the residual stream after the last layer, [d, n] -> [d, n].
Node next_thought(Graph & g, const Backbone & model, const ThoughtModules & modules, Node state);

// The passes before the end row; shared by inference and training. prompt: embedded prompts side by side [d, n_prompt];
// first: rows of the prompts followed by one start row per sequence; thought_rows: one Rows of n rows per thought.
// Appends the state of every row but the end row's. Gives the thoughts, [d, n] each.
std::vector<Node> thought_passes(Graph & g, const Backbone & model, const ThoughtModules & modules, Node prompt,
                                 int n_sequences, const RowLayout & first, const OutputRows & first_output,
                                 const std::vector<RowLayout> & thought_rows, SequenceState & kv);

} // namespace penelope
