#include "train/fit_modules.h"

#include "base/log.h"
#include "base/ridge.h"
#include "graph/transfer.h"
#include "train/batch_inputs.h"
#include "train/curriculum.h"
#include "train/length_buckets.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace penelope {

namespace {

constexpr size_t kRowsPerInput = 8;   // pairs of rows for each dimension of the model
constexpr size_t kMostExamples = 128; // of the training data
constexpr size_t kBatch        = 8;
constexpr double kPenalty      = 1e-2;
constexpr float  kGateBias     = -3.0f; // z = 0.05: the candidate replaces the memory
constexpr float  kRateBias     = 3.0f;  // alpha = 0.5 + 0.25 tanh(3) = 0.75
constexpr float  kCandidate    = 0.97f; // a candidate lies in (-1, 1)

struct Pairs {
    // [n][d]: H where a token is predicted, the interval's input there, and the input one row later, where the token is
    // read.
    std::vector<float>   said, held, read;
    std::vector<int32_t> tokens;
    // How often each token stands last in the prompt, and last before the answer.
    std::map<int32_t, size_t> before_steps, before_answer;
};

// One minibatch with visible steps through layers [0:s) and [s:e).
void add_pairs(const TrainedModel & model, const Minibatch & batch, const Backend & backend, Workspace & workspace,
               Pairs & pairs) {
    const Backbone &      backbone = model.backbone();
    const size_t          d        = size_t(backbone.config.n_embd);
    Graph                 graph(nullptr, &backend);
    BatchInputs           inputs(backbone.config, nullptr, batch.is_padded);
    const CotObjective    objective;
    std::vector<SeqRange> sequences;
    for (int b = 0; b < batch.n_examples(); b++) {
        const TokenizedExample & example = batch.examples[size_t(b)];
        sequences.push_back({ b, 0, int(example.prompt.size() + example.target.size()) - 1 });
    }
    const std::vector<int32_t> ids      = objective.input_tokens(batch);
    Node                       id_input = graph.input("ids", GGML_TYPE_I32, int64_t(ids.size()));
    Node                       tokens   = embed_tokens(graph, backbone, id_input);
    const RowLayout &          rows     = inputs.rows(graph, "rows", sequences).rows();
    const SidecarConfig &      c        = model.sidecar();
    Node                       read = run_layers(graph, backbone, 0, int(c.interval_start), tokens, rows, inputs.kv());
    graph.output(read);
    graph.expand(read);
    Node said = run_layers(graph, backbone, int(c.interval_start), int(c.interval_end), read, rows, inputs.kv());
    graph.output(said);
    graph.expand(said);
    graph.allocate(backend, workspace);
    inputs.fill(graph, batch);
    graph.set(id_input, ids);
    graph.compute(backend);

    const std::vector<float> of_read = get_node(read), of_said = get_node(said);
    size_t                   first = 0; // row of the sequence
    for (const TokenizedExample & example : batch.examples) {
        for (size_t i = 0; i + 1 < example.n_target(); i++) { // the last token is not read again
            const size_t row  = first + example.prompt.size() + i;
            const auto   copy = [d](const std::vector<float> & from, size_t at, std::vector<float> & to) {
                to.insert(to.end(), from.begin() + ptrdiff_t(at * d), from.begin() + ptrdiff_t((at + 1) * d));
            };
            copy(of_said, row - 1, pairs.said);
            copy(of_read, row - 1, pairs.held);
            copy(of_read, row, pairs.read);
            pairs.tokens.push_back(example.target[i]);
        }
        first += example.prompt.size() + example.target.size() - 1;
    }
}

Pairs collect_pairs(const TrainedModel & model, const TrainingData & data, const StepTargets & targets,
                    const Backend & backend) {
    const size_t n_wanted   = kRowsPerInput * size_t(model.backbone().config.n_embd);
    const size_t n_examples = std::min(data.size(), kMostExamples);
    Workspace    workspace(backend);
    Pairs        pairs;
    for (size_t first = 0; first < n_examples && pairs.tokens.size() < n_wanted; first += kBatch) {
        Minibatch batch;
        for (size_t i = first; i < std::min(n_examples, first + kBatch); i++) {
            const TokenizedExample example  = data.with_chain(i, targets.chain(data.example(i)));
            const size_t           n_answer = data.tokenized(i, kAnswerOnly).target.size();
            pairs.before_steps[example.prompt.back()]++;
            if (n_answer < example.target.size()) {
                pairs.before_answer[example.target[example.target.size() - n_answer - 1]]++;
            }
            batch.examples.push_back(example);
        }
        add_pairs(model, pad_for_device(batch, model.backbone(), backend), backend, workspace, pairs);
    }
    return pairs;
}

int32_t most_frequent(const std::map<int32_t, size_t> & counts) {
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto & a, const auto & b) { return a.second < b.second; })
        ->first;
}

} // namespace

void fit_modules(TrainedModel & model, const TrainingData & data, const StepTargets & targets,
                 const Backend & backend) {
    const size_t d     = size_t(model.backbone().config.n_embd);
    Pairs        pairs = collect_pairs(model, data, targets, backend);
    // Every token counts the same, however often it is written.
    std::map<int32_t, float> counts;
    for (int32_t token : pairs.tokens) {
        counts[token] += 1;
    }
    std::vector<float> importance;
    for (int32_t token : pairs.tokens) {
        importance.push_back(1 / counts[token]);
    }
    // The candidate n with share * tanh(n) + (1 - share) * held = read.
    const float        share = (0.5f + 0.25f * std::tanh(kRateBias)) / (1 + std::exp(kGateBias));
    std::vector<float> candidate(pairs.read.size());
    for (size_t i = 0; i < candidate.size(); i++) {
        const float value = (pairs.read[i] - (1 - share) * pairs.held[i]) / share;
        candidate[i]      = std::atanh(std::clamp(value, -kCandidate, kCandidate));
    }
    const LinearMap map = fit_ridge(pairs.said, candidate, importance, d, d, kPenalty);

    Optimizer & optimizer = model.optimizer();
    const auto  change    = [&](const std::string & name, auto && edit) {
        std::vector<float> values = optimizer.values(name);
        edit(values);
        optimizer.set_values(name, values);
    };
    // Rows r, z, n of the GRU: z and n no longer depend on anything but the input.
    const size_t z = d, n = 2 * d;
    for (const char * part : { "input", "hidden" }) {
        const std::string name = "penelope.memory.gru." + std::string(part);
        change(name + ".weight",
               [&](std::vector<float> & w) { std::fill(w.begin() + ptrdiff_t(z * d), w.end(), 0.0f); });
        change(name + ".bias", [&](std::vector<float> & b) { std::fill(b.begin() + ptrdiff_t(z), b.end(), 0.0f); });
    }
    change("penelope.memory.gru.input.weight", [&](std::vector<float> & w) {
        std::copy(map.weight.begin(), map.weight.end(), w.begin() + ptrdiff_t(n * d));
    });
    change("penelope.memory.gru.input.bias", [&](std::vector<float> & b) {
        std::fill(b.begin() + ptrdiff_t(z), b.begin() + ptrdiff_t(n), kGateBias);
        std::copy(map.bias.begin(), map.bias.end(), b.begin() + ptrdiff_t(n));
    });
    // The readout stays what it is at first.
    change("penelope.readout.gru.input.bias",
           [&](std::vector<float> & b) { std::fill(b.begin() + ptrdiff_t(z), b.begin() + ptrdiff_t(n), -kGateBias); });
    const auto add_embedding = [&](const std::string & name, const std::map<int32_t, size_t> & tokens) {
        if (!tokens.empty()) {
            const std::vector<float> row =
                read_rows(model.base(), *model.base().find_tensor("token_embd.weight"), most_frequent(tokens), 1);
            change(name, [&](std::vector<float> & rows) {
                for (size_t i = 0; i < rows.size(); i++) {
                    rows[i] = row[i % d];
                }
            });
        }
    };
    add_embedding("penelope.memory.anchor", pairs.before_steps);
    add_embedding("penelope.readout.anchor", pairs.before_answer);
    // Marks of rows and steps are noise to a model that has never seen any.
    for (const char * name : { "penelope.memory.group", "penelope.memory.step", "penelope.readout.step" }) {
        change(name, [](std::vector<float> & rows) { std::fill(rows.begin(), rows.end(), 0.0f); });
    }
    change("penelope.time.out.bias", [&](std::vector<float> & b) { b.back() = kRateBias; });
    log_debug("fitted the memory's GRU on " + std::to_string(pairs.tokens.size()) + " written tokens, " +
              std::to_string(counts.size()) + " different ones");
}

} // namespace penelope
