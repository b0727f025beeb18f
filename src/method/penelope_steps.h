// Penelope a step at a time or in one graph, see method/latent_steps.h. A step by itself serves streams at any t: their
// M and R are gathered from the device, and the time tables by their t.
#pragma once

#include "method/batch_layout.h"
#include "method/latent_steps.h"
#include "method/penelope.h"
#include "model/weights.h"

namespace penelope {

class PenelopeSteps : public LatentSteps {
  public:
    // Takes memory for the states of every stream of the context. Method and context outlive it.
    PenelopeSteps(const PenelopeMethod & method, Context & context);

    std::vector<StateTensor> read_state(int stream) const override;
    std::vector<StateTensor> states(const Prompt & prompt, int n_steps) override;

    std::vector<LayerAttention> attention(int stream, const std::vector<StateTensor> & before) override;

  protected:
    PassResult run(const Pass & pass) override;

  private:
    struct Built;
    struct AttentionGraph;

    int              n_rows_after(int stream) const { return at(stream).n_prompt + method_.shape().n_interface(); }
    BatchLayout      layout_after_prompt(const std::vector<int> & streams) const;
    Built &          graph(const BatchLayout & rows, int n_steps, bool finish, bool keep_states);
    Node             build_start(Built & built, const BatchLayout & rows);
    void             build_final(Built & built, const BatchLayout & rows, Node prompt, bool all_rows);
    TimeStep         gather_time_step(Built & built, int n);
    AttentionGraph & attention_graph(const std::vector<SeqRange> & memory);
    void             compute(Built & built, const BatchLayout & rows);
    Node             gather(Graph & g, Node states, Node index, int n_rows) const;
    void             scatter(Graph & g, Node states, Node rows, Node index) const;

    const PenelopeMethod & method_;
    int                    d_;
    WeightStore            store_;
    Node                   memory_, features_, readout_; // [d * m, streams], [d * m, streams], [d * q, streams]
    Node offsets_, readout_steps_, gains_, shifts_, update_rates_; // [d * m or d, k_max], row t - 1 for step t
};

} // namespace penelope
