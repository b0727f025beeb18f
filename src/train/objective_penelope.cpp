// The rows of sequence b: prompt at places 0 .. n-1, memory and readout at n .. n+m+q-1, target tokens from n+m+q on.
// The last readout row predicts the first target token, so the rows that predict are one stretch that starts there.
#include "latent/trajectory.h"
#include "train/objective.h"

namespace penelope {

namespace {

// The first rows of the memory of every sequence, H_t[b][0 .. n_rows): [d, m * n] -> [d, n_rows * n].
Node first_memory_rows(Graph & g, const LatentShape & shape, Node features, int n_rows) {
    const int64_t d    = features->ne[0];
    const int64_t n    = features->ne[1] / shape.n_memory;
    Node          each = reshape_rows(g, features, d * shape.n_memory, n);
    return reshape_rows(g, slice_features(g, each, 0, d * n_rows), d, n_rows * n);
}

// What step t should say, as the rows of a gold memory; t counts from 1.
GoldRows gold_rows(Graph & g, const LatentShape & shape, BatchInputs & inputs, int n, int t) {
    const int         m    = shape.n_memory;
    const std::string name = "gold." + std::to_string(t) + ".";
    const auto        said = [t](const TokenizedExample & example) {
        return size_t(t) <= example.step_targets.size() ? example.step_targets[size_t(t - 1)] : std::vector<int32_t>{};
    };
    GoldRows gold{};
    gold.ids         = inputs.index(g, name + "ids", m * n, [=](const Minibatch & batch) {
        std::vector<int32_t> ids;
        for (const TokenizedExample & example : batch.examples) {
            std::vector<int32_t> tokens = said(example);
            tokens.resize(size_t(m), 0);
            ids.insert(ids.end(), tokens.begin(), tokens.end());
        }
        return ids;
    });
    gold.index       = inputs.index(g, name + "index", m * n, [=](const Minibatch & batch) {
        std::vector<int32_t> index;
        for (const TokenizedExample & example : batch.examples) {
            const int n_supervised_step_targets = int(said(example).size());
            for (int i = 0; i < m; i++) {
                index.push_back(i < n_supervised_step_targets ? int(index.size()) : m * n + i);
            }
        }
        return index;
    });
    const auto share = [=](bool of_forced) {
        return [=](const Minibatch & batch) {
            std::vector<float> all;
            for (const TokenizedExample & example : batch.examples) {
                all.insert(all.end(), size_t(m), (example.n_forced >= t) == of_forced ? 1.0f : 0.0f);
            }
            return all;
        };
    };
    gold.own    = inputs.matrix(g, name + "own", 1, m * n, share(false));
    gold.forced = inputs.matrix(g, name + "forced", 1, m * n, share(true));
    return gold;
}

} // namespace

BuiltObjective PenelopeObjective::build(Graph & g, const Backbone & model, const Minibatch & batch, Node tokens,
                                        BatchInputs & inputs) const {
    const int             n       = batch.n_examples();
    const int             n_inter = shape_.n_interface();
    std::vector<SeqRange> prompts, interfaces, targets, memory, predicting;
    int                   n_prompt_rows = 0, n_target_rows = 0;
    for (int b = 0; b < n; b++) {
        const int n_prompt = int(batch.examples[size_t(b)].prompt.size());
        const int n_target = int(batch.examples[size_t(b)].target.size());
        prompts.push_back({ b, 0, n_prompt });
        interfaces.push_back({ b, n_prompt, n_inter });
        memory.push_back({ b, n_prompt, shape_.n_memory });
        predicting.push_back({ b, n_prompt + n_inter - 1, n_target });
        if (n_target > 1) {
            targets.push_back({ b, n_prompt + n_inter, n_target - 1 });
        }
        n_prompt_rows += n_prompt;
        n_target_rows += n_target - 1;
    }
    // Rows of the final pass: with the prompts in front when layers follow the interval.
    const int            n_before = shape_.end < model.config.n_layer ? n_prompt_rows : 0;
    std::vector<int32_t> index;
    int                  next_target = n_before + n * n_inter;
    for (int b = 0; b < n; b++) {
        index.push_back(n_before + (b + 1) * n_inter - 1);
        for (size_t i = 1; i < batch.examples[size_t(b)].target.size(); i++) {
            index.push_back(next_target++);
        }
    }

    std::vector<SeqRange> all = prompts;
    all.insert(all.end(), interfaces.begin(), interfaces.end());
    all.insert(all.end(), targets.begin(), targets.end());
    RowInputs &       all_rows = inputs.rows(g, "rows", all);
    const RowLayout & last     = inputs.rows(g, "predicting", predicting).rows();
    TrajectoryRows    rows;
    rows.all              = all_rows.rows();
    rows.prompt           = all_rows.subset(g, 0, n);
    rows.interface_target = all_rows.subset(g, n, n + int(targets.size()));
    rows.memory           = inputs.rows(g, "memory", memory).rows();
    rows.output.index     = inputs.index(g, "predicting.index", index);
    rows.output.positions = last.positions;
    rows.output.segments  = last.segments;

    for (int t = 1; t <= batch.n_forced(); t++) {
        rows.gold.push_back(gold_rows(g, shape_, inputs, n, t));
    }

    std::vector<TimeStep> steps;
    if (batch.n_steps > 0) {
        steps = time_network(g, modules_, shape_,
                             inputs.matrix(g, "time", 2, batch.n_steps, time_coordinates(shape_, batch.n_steps)));
    }
    Node             prompt = slice_rows(g, tokens, 0, n_prompt_rows);
    Node             target = n_target_rows ? slice_rows(g, tokens, n_prompt_rows, n_target_rows) : nullptr;
    const Trajectory trajectory =
        build_trajectory(g, model, modules_, shape_, steps, batch.n_steps, prompt, target, n, rows, inputs.kv());
    std::vector<Node> states{ trajectory.output };
    if (batch.n_step_target_rows > 0) {
        for (Node features : trajectory.features) {
            states.push_back(first_memory_rows(g, shape_, features, batch.n_step_target_rows));
        }
    }
    return { concat_rows(g, states) };
}

int PenelopeObjective::n_layer_applications(const Backbone & model, int n_steps) const {
    return model.config.n_layer + (n_steps + 1) * (shape_.end - shape_.start);
}

} // namespace penelope
