// Penelope a step at a time, see method/latent_steps.h: graphs for the start of a question, one refinement and the final pass.
// One refinement graph serves every step: a stream's M and R are gathered from the device, and the time tables by its t.
#pragma once

#include "method/latent_steps.h"
#include "method/penelope.h"
#include "method/placement.h"
#include "model/weights.h"

namespace penelope {

class PenelopeSteps : public LatentSteps {
  public:
    // Takes memory for the states of every stream of the context. Method and context outlive it.
    PenelopeSteps(const PenelopeMethod & method, Context & context);
    ~PenelopeSteps() override;

    void                     start(const std::vector<Prompt> & prompts) override;
    void                     advance(const std::vector<int> & streams) override;
    Filled                   finish(const std::vector<int> & streams) override;
    int                      step(int stream) const override { return at(stream).t; }
    int                      layer_applications(int stream) const override;
    std::vector<StateTensor> look(int stream) const override;

  private:
    struct StartGraph;
    struct RefineGraph;
    struct FinalGraph;

    // Where a stream stands.
    struct Place {
        int n_prompt   = 0; // tokens
        int t          = 0;
        int n_thinking = 0; // layer applications of start and steps
        int n_final    = 0; // and of the final pass
    };

    const Place &        at(int stream) const { return places_[size_t(stream)]; }
    Place &              at(int stream) { return places_[size_t(stream)]; }
    int                  rounded(int n_rows) const;
    std::vector<Stretch> stretches(const std::vector<int> & streams, int first, int count, Hold to) const;
    int                  n_rows_after(int stream) const { return at(stream).n_prompt + method_.shape().n_interface(); }
    StartGraph &         start_graph(const Placement & p);
    RefineGraph &        refine_graph(const std::vector<Stretch> & memory);
    FinalGraph &         final_graph(const std::vector<Stretch> & rows, const std::vector<Stretch> & last);
    Node                 gather(Graph & g, Node states, Node index, int n_rows) const;
    void                 keep(Graph & g, Node states, Node rows, Node index) const;

    const PenelopeMethod & method_;
    Context &              context_;
    int                    d_;
    WeightStore            store_;
    Node                   memory_, features_, readout_; // [d * m, streams], [d * m, streams], [d * q, streams]
    Node               offsets_, readout_steps_, gains_, shifts_, pulls_; // [d * m or d, k_max], row t - 1 for step t
    std::vector<Place> places_;
};

} // namespace penelope
