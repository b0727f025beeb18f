// The rows of sequence b: prompt at places 0 .. n-1, start at n, thoughts at n+1 .. n+K, end at n+K+1, target tokens after it.
// The end row predicts the first target token.
#include "train/objective.h"

namespace penelope {

BuiltObjective CoconutObjective::build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                       StepInputs & inputs) const {
    const int                         n = batch.n_examples();
    std::vector<Stretch>              first, starts, predicting;
    std::vector<std::vector<Stretch>> thoughts{ size_t(batch.n_steps) };
    int                               n_prompt_rows = 0;
    for (int b = 0; b < n; b++) {
        const int n_prompt = int(batch.examples[size_t(b)].prompt.size());
        first.push_back(stretch(b, 0, n_prompt));
        starts.push_back(stretch(b, n_prompt, 1));
        for (int t = 1; t <= batch.n_steps; t++) {
            thoughts[size_t(t - 1)].push_back(stretch(b, n_prompt + t, 1));
        }
        predicting.push_back(stretch(b, n_prompt + batch.n_steps + 1, int(batch.examples[size_t(b)].target.size())));
        n_prompt_rows += n_prompt;
    }
    first.insert(first.end(), starts.begin(), starts.end());
    RowInputs &       first_rows = inputs.rows(g, "first", first);
    const Rows        start_rows = first_rows.part(g, n, n);
    std::vector<Rows> thought_rows;
    for (const std::vector<Stretch> & stretches : thoughts) {
        thought_rows.push_back(inputs.rows(g, "thought", stretches).rows());
    }
    Queries kept;
    kept.first     = n_prompt_rows;
    kept.count     = n;
    kept.positions = start_rows.positions;
    kept.segments  = start_rows.segments;

    Node prompt = slice_rows(g, tokens, 0, n_prompt_rows);
    thought_passes(g, model, modules_, prompt, n, first_rows.rows(), kept, thought_rows, inputs.kv());

    // [end; targets without their last] of every sequence
    Node              end = slice_rows(g, modules_.token_rows, 1, 1);
    std::vector<Node> parts;
    int64_t           next = n_prompt_rows;
    for (const TokenizedExample & example : batch.examples) {
        const int64_t count = int64_t(example.target.size()) - 1;
        parts.push_back(end);
        if (count > 0) {
            parts.push_back(slice_rows(g, tokens, next, count));
        }
        next += count;
    }
    const Rows & rows = inputs.rows(g, "predicting", predicting).rows();
    return { run_layers(g, model, 0, model.config.n_layer, concat_rows(g, parts), rows, inputs.kv()) };
}

int CoconutObjective::n_layer_applications(const Backbone & model, int n_steps) const {
    return (n_steps + 2) * model.config.n_layer;
}

} // namespace penelope
