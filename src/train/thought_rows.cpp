#include "train/thought_rows.h"

namespace penelope {

ThoughtRows build_thought_rows(Graph & g, const Backbone & model, const ThoughtModules & modules,
                               const Minibatch & batch, Node tokens, BatchInputs & inputs) {
    const int                          n = batch.n_examples();
    std::vector<SeqRange>              first, starts, predicting;
    std::vector<std::vector<SeqRange>> thoughts{ size_t(batch.n_steps) };
    int                                n_prompt_rows = 0;
    for (int b = 0; b < n; b++) {
        const TokenizedExample & example  = batch.examples[size_t(b)];
        const int                n_prompt = int(example.prompt.size());
        first.push_back({ b, 0, n_prompt });
        starts.push_back({ b, n_prompt, 1 });
        for (int t = 1; t <= batch.n_steps; t++) {
            thoughts[size_t(t - 1)].push_back({ b, n_prompt + t, 1 });
        }
        predicting.push_back({ b, n_prompt + batch.n_steps + 1, int(example.target.size()) });
        n_prompt_rows += n_prompt;
    }
    first.insert(first.end(), starts.begin(), starts.end());
    RowInputs &            first_rows = inputs.rows(g, "first", first);
    const RowLayout        start_rows = first_rows.subset(g, n, n);
    std::vector<RowLayout> thought_rows;
    for (const std::vector<SeqRange> & ranges : thoughts) {
        thought_rows.push_back(inputs.rows(g, "thought", ranges).rows());
    }
    OutputRows output_rows;
    output_rows.first     = n_prompt_rows;
    output_rows.count     = n;
    output_rows.positions = start_rows.positions;
    output_rows.segments  = start_rows.segments;
    Node thought          = start_pass(g, model, modules, slice_rows(g, tokens, 0, n_prompt_rows), n, first_rows.rows(),
                                       output_rows, inputs.kv(), batch.n_steps > 0);
    thought_passes(g, model, modules, thought, thought_rows, inputs.kv(), false);

    Node              end = slice_rows(g, modules.token_rows, 1, 1);
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
    return { concat_rows(g, parts), std::move(predicting), next };
}

} // namespace penelope
