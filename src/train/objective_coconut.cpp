#include "train/objective.h"
#include "train/thought_rows.h"

namespace penelope {

BuiltObjective CoconutObjective::build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                       StepInputs & inputs) const {
    const ThoughtRows after = think_first(g, model, modules_, batch, tokens, inputs);
    const Rows &      rows  = inputs.rows(g, "predicting", after.predicting).rows();
    return { run_layers(g, model, 0, model.config.n_layer, after.input, rows, inputs.kv()) };
}

int CoconutObjective::n_layer_applications(const Backbone & model, int n_steps) const {
    return (n_steps + 2) * model.config.n_layer;
}

} // namespace penelope
