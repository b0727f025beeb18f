#include "train/objective.h"
#include "train/thought_rows.h"

namespace penelope {

BuiltObjective CoconutObjective::build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                       BatchInputs & inputs) const {
    const ThoughtRows after = build_thought_rows(g, model, modules_, batch, tokens, inputs);
    const RowLayout & rows  = inputs.rows(g, "predicting", after.predicting).rows();
    return { run_layers(g, model, 0, model.config.n_layer, after.input, rows, inputs.kv()) };
}

int CoconutObjective::n_layer_applications(const Backbone & model, int n_steps) const {
    return (n_steps + 2) * model.config.n_layer;
}

} // namespace penelope
