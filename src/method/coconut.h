// Coconut: a start row, K thoughts, an end row. Each thought is the state after the final norm at the row before it, fed back
// as an input embedding; every pass goes through all layers. The whole is one graph.
#pragma once

#include "method/method.h"

namespace penelope {

// K thoughts of n sequences as nodes; shared by inference and training.
struct CoconutPasses {
    std::vector<Node> thoughts; // [d, n] each, after the final norm
};

class CoconutMethod : public Method {
  public:
    // token_rows: input embeddings of the start and end markers, [d, 2]. Outlives the method.
    CoconutMethod(Node token_rows, int k_max, int k_default)
        : token_rows_(token_rows), k_max_(k_max), k_default_(k_default) {}

    std::string name() const override { return "coconut"; }
    int         default_steps() const override { return k_default_; }
    int         max_steps() const override { return k_max_; }
    int         n_extra_rows(int n_steps) const override { return n_steps + 2; }

    Filled                   fill(Context & context, const std::vector<Prompt> & prompts, int n_steps) const override;
    std::vector<StateTensor> states(Context & context, const Prompt & prompt, int n_steps) const override;

  private:
    struct Built;
    Built & run(Context & context, const std::vector<Prompt> & prompts, int n_steps, int & applications) const;

    Node token_rows_;
    int  k_max_, k_default_;
};

// The passes before the end row. prompt: embedded prompts side by side [d, n_prompt]; first: rows of the prompts followed by
// one start row per sequence; thought_rows: one Rows of n rows per thought. Appends K/V of every row but the end row's.
CoconutPasses coconut_passes(Graph & g, const Backbone & model, Node prompt, Node start_row, int n_sequences,
                             const Rows & first, const Queries & first_kept, const std::vector<Rows> & thought_rows,
                             SequenceState & kv);

} // namespace penelope
