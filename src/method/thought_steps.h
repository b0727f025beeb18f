// Coconut and CODI a step at a time, see method/latent_steps.h: a pass over prompt and start row, a pass per thought, a
// pass over the end row. The next thought of every stream waits on the device.
#pragma once

#include "method/latent_steps.h"
#include "method/thoughts.h"
#include "model/weights.h"

namespace penelope {

class ThoughtSteps : public LatentSteps {
  public:
    // Method and context outlive it.
    ThoughtSteps(const ThoughtMethod & method, Context & context);

    void    start(const std::vector<Prompt> & prompts) override;
    void    advance(const std::vector<int> & streams) override;
    Prefill finish(const std::vector<int> & streams) override;
    int     step(int stream) const override { return at(stream).t; }
    int layer_applications(int stream) const override { return at(stream).n_step_applications + at(stream).n_final; }
    // "R": the thought that comes next, one row.
    std::vector<StateTensor> read_state(int stream) const override;

  private:
    struct StartGraph;
    struct ThoughtGraph;
    struct EndGraph;

    struct StreamState {
        int n_prompt            = 0; // tokens
        int t                   = 0;
        int n_step_applications = 0; // layer applications of start and steps
        int n_final             = 0; // and of the end row
    };

    const StreamState &   at(int stream) const { return streams_[size_t(stream)]; }
    StreamState &         at(int stream) { return streams_[size_t(stream)]; }
    std::vector<SeqRange> after_thoughts(const std::vector<int> & streams, int first, int count) const;
    void                  store_next(Graph & g, Node state, Node streams) const;
    StartGraph &          start_graph(const std::vector<SeqRange> & first, int n_ids);
    ThoughtGraph &        thought_graph(const std::vector<SeqRange> & rows);
    EndGraph &            end_graph(const std::vector<SeqRange> & rows, const std::vector<SeqRange> & last);

    const ThoughtMethod &    method_;
    Context &                context_;
    WeightStore              store_;
    Node                     next_; // [d, streams]
    std::vector<StreamState> streams_;
};

} // namespace penelope
