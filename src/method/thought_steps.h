// Coconut and CODI a step at a time, see method/latent_steps.h: a pass over prompt and start row, a pass per thought, a pass
// over the end row. The next thought of every stream waits on the device.
#pragma once

#include "method/latent_steps.h"
#include "method/thoughts.h"
#include "model/weights.h"

namespace penelope {

class ThoughtSteps : public LatentSteps {
  public:
    // Method and context outlive it.
    ThoughtSteps(const ThoughtMethod & method, Context & context);

    void   start(const std::vector<Prompt> & prompts) override;
    void   advance(const std::vector<int> & streams) override;
    Filled finish(const std::vector<int> & streams) override;
    int    step(int stream) const override { return at(stream).t; }
    int    layer_applications(int stream) const override { return at(stream).n_thinking + at(stream).n_final; }
    // "R": the thought that comes next, one row.
    std::vector<StateTensor> look(int stream) const override;

  private:
    struct StartGraph;
    struct ThoughtGraph;
    struct EndGraph;

    struct Place {
        int n_prompt   = 0; // tokens
        int t          = 0;
        int n_thinking = 0; // layer applications of start and steps
        int n_final    = 0; // and of the end row
    };

    const Place &        at(int stream) const { return places_[size_t(stream)]; }
    Place &              at(int stream) { return places_[size_t(stream)]; }
    std::vector<Stretch> after_thoughts(const std::vector<int> & streams, int first, int count) const;
    void                 keep_next(Graph & g, Node state, Node streams) const;
    StartGraph &         start_graph(const std::vector<Stretch> & first, int n_ids);
    ThoughtGraph &       thought_graph(const std::vector<Stretch> & rows);
    EndGraph &           end_graph(const std::vector<Stretch> & rows, const std::vector<Stretch> & last);

    const ThoughtMethod & method_;
    Context &             context_;
    WeightStore           store_;
    Node                  next_; // [d, streams]
    std::vector<Place>    places_;
};

} // namespace penelope
