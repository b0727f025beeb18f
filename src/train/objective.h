// Training objective of a method: builds the graph from the tokens of a minibatch to the hidden states that predict the
// target tokens. One class per method; the trainer only uses this interface.
#pragma once

#include "latent/modules.h"
#include "method/thoughts.h"
#include "model/backbone.h"
#include "train/batch_inputs.h"
#include "train/minibatch.h"

#include <string>

namespace penelope {

struct BuiltObjective {
    Node rows;               // hidden states after the last layer, [n_embd, n_labels]
    Node distance = nullptr; // CODI: [1], distillation loss
};

class Objective {
  public:
    virtual ~Objective() = default;

    virtual std::string name() const = 0;

    // Token ids whose embeddings are passed to build(), in this order.
    virtual std::vector<int32_t> input_tokens(const Minibatch & batch) const;

    // tokens: [n_embd, n], the embeddings of input_tokens(). Returns the rows that predict the target tokens, sequence
    // by sequence, then the states of the latent steps with step targets, then the rows that predict the teacher
    // tokens. Uses only the lengths and K of `batch`, because the graph is reused.
    virtual BuiltObjective build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                 BatchInputs & inputs) const = 0;

    // Number of sequential layer applications, for time estimates.
    virtual int n_layer_applications(const Backbone & model, int n_steps) const = 0;

    // Number of rows between prompt and target.
    virtual int n_extra_rows(int /*n_steps*/) const { return 0; }
};

// CoT fine-tuning: next-token prediction of the target after the prompt.
class CotObjective : public Objective {
  public:
    std::string          name() const override { return "cot"; }
    std::vector<int32_t> input_tokens(const Minibatch & batch) const override;
    BuiltObjective       build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                               BatchInputs & inputs) const override;
    int                  n_layer_applications(const Backbone & model, int n_steps) const override;
};

// K latent steps; then the last readout row predicts the first target token.
class PenelopeObjective : public Objective {
  public:
    PenelopeObjective(const PenelopeModules & modules, const LatentShape & shape) : modules_(modules), shape_(shape) {}

    std::string    name() const override { return "penelope"; }
    BuiltObjective build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                         BatchInputs & inputs) const override;
    int            n_layer_applications(const Backbone & model, int n_steps) const override;
    int            n_extra_rows(int) const override { return shape_.n_interface(); }

  private:
    PenelopeModules modules_;
    LatentShape     shape_;
};

// A start row, K thoughts and an end row, which predicts the first target token.
class CoconutObjective : public Objective {
  public:
    explicit CoconutObjective(const ThoughtModules & modules) : modules_(modules) {}

    std::string    name() const override { return "coconut"; }
    BuiltObjective build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                         BatchInputs & inputs) const override;
    int            n_layer_applications(const Backbone & model, int n_steps) const override;
    int            n_extra_rows(int n_steps) const override { return n_steps + 2; }

  private:
    ThoughtModules modules_;
};

// Self-distillation: the student answers after thoughts as in Coconut, the teacher after the visible steps, and a
// distillation loss pulls the student's states towards the teacher's. Without a teacher in the minibatch (validation)
// only the student runs.
class CodiObjective : public Objective {
  public:
    explicit CodiObjective(const ThoughtModules & modules) : modules_(modules) {}

    std::string          name() const override { return "codi"; }
    std::vector<int32_t> input_tokens(const Minibatch & batch) const override;
    BuiltObjective       build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                               BatchInputs & inputs) const override;
    int                  n_layer_applications(const Backbone & model, int n_steps) const override;
    int                  n_extra_rows(int n_steps) const override { return n_steps + 2; }

  private:
    ThoughtModules modules_;
};

} // namespace penelope
