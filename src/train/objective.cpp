#include "train/objective.h"

namespace penelope {

// All prompts, then all targets without their last token, which has no next token to predict.
std::vector<int32_t> Objective::input_tokens(const Minibatch & batch) const {
    std::vector<int32_t> ids;
    for (const TokenizedExample & example : batch.examples) {
        ids.insert(ids.end(), example.prompt.begin(), example.prompt.end());
    }
    for (const TokenizedExample & example : batch.examples) {
        ids.insert(ids.end(), example.target.begin(), example.target.end() - 1);
    }
    return ids;
}

std::vector<int32_t> CotObjective::input_tokens(const Minibatch & batch) const {
    std::vector<int32_t> ids;
    for (const TokenizedExample & example : batch.examples) {
        ids.insert(ids.end(), example.prompt.begin(), example.prompt.end());
        ids.insert(ids.end(), example.target.begin(), example.target.end() - 1);
    }
    return ids;
}

BuiltObjective CotObjective::build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                   BatchInputs & inputs) const {
    std::vector<SeqRange> sequences, predicting;
    std::vector<int32_t>  index;
    int                   first = 0; // row of the sequence in the matrix
    for (int b = 0; b < batch.n_examples(); b++) {
        const int n_prompt = int(batch.examples[size_t(b)].prompt.size());
        const int n_target = int(batch.examples[size_t(b)].target.size());
        sequences.push_back({ b, 0, n_prompt + n_target - 1 });
        predicting.push_back({ b, n_prompt - 1, n_target });
        for (int i = 0; i < n_target; i++) {
            index.push_back(first + n_prompt - 1 + i);
        }
        first += n_prompt + n_target - 1;
    }
    const RowLayout & rows = inputs.rows(g, "rows", sequences).rows();
    const RowLayout & last = inputs.rows(g, "predicting", predicting).rows();
    OutputRows        output_rows;
    output_rows.index     = inputs.index(g, "predicting.index", index);
    output_rows.positions = last.positions;
    output_rows.segments  = last.segments;
    return { run_layers(g, model, 0, model.config.n_layer, tokens, rows, inputs.kv(), &output_rows) };
}

int CotObjective::n_layer_applications(const Backbone & model, int) const {
    return model.config.n_layer;
}

} // namespace penelope
