// What a method learns: how the sequences of a minibatch become the hidden states that have to predict the target tokens.
// One implementation per method; the trainer never asks which one it has.
#pragma once

#include "latent/modules.h"
#include "method/thoughts.h"
#include "model/backbone.h"
#include "train/batch_inputs.h"
#include "train/minibatch.h"

#include <string>

namespace penelope {

struct BuiltObjective {
    Node rows;               // residual stream after the last layer, [n_embd, n_labels]
    Node distance = nullptr; // [1], of a student from its teacher
};

class Objective {
  public:
    virtual ~Objective() = default;

    virtual std::string name() const = 0;

    // The tokens whose embeddings build() gets, in its order.
    virtual std::vector<int32_t> input_tokens(const Minibatch & batch) const;

    // All sequences of the minibatch, side by side. tokens: [n_embd, n] embedded input_tokens(). Gives the rows that
    // predict the targets, sequence after sequence, then the states of the latent steps that say thoughts, then the rows that
    // predict what teachers write. Only the lengths in `batch` and its depth are looked at.
    virtual BuiltObjective build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                 BatchInputs & inputs) const = 0;

    // Sequential layer applications of a minibatch, for the time it takes.
    virtual int n_layer_applications(const Backbone & model, int n_steps) const = 0;

    // Rows between prompt and target.
    virtual int n_extra_rows(int /*n_steps*/) const { return 0; }
};

// Visible chain of thought: the target follows the prompt, and every target token is predicted from what stands before it.
class CotObjective : public Objective {
  public:
    std::string          name() const override { return "cot"; }
    std::vector<int32_t> input_tokens(const Minibatch & batch) const override;
    BuiltObjective       build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                               BatchInputs & inputs) const override;
    int                  n_layer_applications(const Backbone & model, int n_steps) const override;
};

// The latent trajectory, then the target from the last readout row on.
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

// A start row, K thoughts, an end row, then the target from the end row on.
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

// Student and teacher in one: the student answers after thoughts as in Coconut, the teacher after the visible steps, and the
// student's states are drawn to the teacher's. Without a teacher in the minibatch only the student's answers are looked at.
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
