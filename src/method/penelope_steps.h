// Penelope a step at a time, see method/latent_steps.h: graphs for the start of a question, one refinement and the
// final pass. One refinement graph serves every step: a stream's M and R are gathered from the device, and the time
// tables by its t.
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
    ~PenelopeSteps() override;

    void                     start(const std::vector<Prompt> & prompts) override;
    void                     advance(const std::vector<int> & streams) override;
    Prefill                  finish(const std::vector<int> & streams) override;
    int                      step(int stream) const override { return at(stream).t; }
    int                      layer_applications(int stream) const override;
    std::vector<StateTensor> read_state(int stream) const override;

    std::vector<LayerAttention> attention(int stream, const std::vector<StateTensor> & before) override;

  private:
    struct StartGraph;
    struct RefineGraph;
    struct FinalGraph;
    struct AttentionGraph;

    // Progress of a stream.
    struct StreamState {
        int n_prompt            = 0; // tokens
        int t                   = 0;
        int n_step_applications = 0; // layer applications of start and steps
        int n_final             = 0; // and of the final pass
    };

    const StreamState &   at(int stream) const { return streams_[size_t(stream)]; }
    StreamState &         at(int stream) { return streams_[size_t(stream)]; }
    int                   rounded_up(int n_rows) const;
    std::vector<SeqRange> ranges(const std::vector<int> & streams, int first, int count, StateSlot to) const;
    int                   n_rows_after(int stream) const { return at(stream).n_prompt + method_.shape().n_interface(); }
    StartGraph &          start_graph(const BatchLayout & p);
    RefineGraph &         refine_graph(const std::vector<SeqRange> & memory);
    FinalGraph &          final_graph(const std::vector<SeqRange> & rows, const std::vector<SeqRange> & last);
    AttentionGraph &      attention_graph(const std::vector<SeqRange> & memory);
    Node                  gather(Graph & g, Node states, Node index, int n_rows) const;
    void                  scatter(Graph & g, Node states, Node rows, Node index) const;

    const PenelopeMethod & method_;
    Context &              context_;
    int                    d_;
    WeightStore            store_;
    Node                   memory_, features_, readout_; // [d * m, streams], [d * m, streams], [d * q, streams]
    Node offsets_, readout_steps_, gains_, shifts_, update_rates_; // [d * m or d, k_max], row t - 1 for step t
    std::vector<StreamState> streams_;
};

} // namespace penelope
