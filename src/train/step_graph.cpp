#include "train/step_graph.h"

namespace penelope {

namespace {

constexpr size_t kMaxGraphs = 2; // the headers of a graph take some megabytes, and lengths seldom come again

// Room for forward and backward nodes.
int step_node_budget(const Objective & objective, const Backbone & model, const Minibatch & batch,
                     const Optimizer * trained) {
    constexpr int kPerLayer = 160, kPerStretch = 64, kPerStep = 320, kPerParameter = 8, kOther = 2048;
    const int     n_applications = objective.n_layer_applications(model, batch.n_steps) + model.config.n_layer;
    const int     n_chunks       = 2 + batch.n_targets() / 16 * (1 + model.config.n_vocab / 4096);
    return n_applications * (kPerLayer + kPerStretch * objective.n_stretches(batch.n_examples())) +
           kPerStep * (batch.n_steps + 1) + 16 * n_chunks + (trained ? kPerParameter * trained->n_tensors() : 0) +
           kOther;
}

} // namespace

std::string StepGraph::key(const Minibatch & batch) {
    std::string text = std::to_string(batch.n_steps);
    for (const TokenizedExample & example : batch.examples) {
        text += ":" + std::to_string(example.prompt.size()) + "," + std::to_string(example.target.size());
    }
    return text;
}

StepGraph::StepGraph(const Objective & objective, const Backbone & model, const Minibatch & like,
                     const Backend & backend, const Optimizer * trained)
    : objective_(objective), backend_(backend),
      graph_(step_node_budget(objective, model, like, trained), trained ? &tape_ : nullptr) {
    tape_.set_host_kernels(backend.device().is_cpu);
    if (trained) {
        trained->watch(tape_);
    }
    ids_        = graph_.input("ids", GGML_TYPE_I32, int64_t(objective.row_tokens(like).size()));
    targets_    = graph_.input("targets", GGML_TYPE_I32, like.n_targets());
    weights_    = graph_.input("weights", GGML_TYPE_F32, like.n_targets());
    Node tokens = embed(graph_, model.embedding, ids_); // [n_embd, n_rows]
    Node last   = objective.build(graph_, model, like, tokens, inputs_);
    loss_       = cross_entropy(graph_, model.head, final_norm(graph_, model, last), targets_, weights_);
    graph_.output(loss_.rows);
    if (trained) {
        tape_.backward(graph_, loss_.loss);
        trained->collect(graph_, tape_);
    }
}

StepLoss StepGraph::run(const Minibatch & batch, Workspace & workspace, float loss_scale) {
    std::vector<int32_t> targets;
    for (const TokenizedExample & example : batch.examples) {
        targets.insert(targets.end(), example.target.begin(), example.target.end());
    }
    graph_.allocate(backend_, workspace);
    inputs_.fill();
    set_node(ids_, objective_.row_tokens(batch));
    set_node(targets_, targets);
    set_node(weights_, std::vector<float>(targets.size(), float(loss_scale * batch.target_weight())));
    graph_.compute(backend_);

    StepLoss loss;
    loss.tokens = get_node(loss_.rows);
    for (float token : loss.tokens) {
        loss.mean += token;
    }
    loss.mean *= batch.target_weight();
    return loss;
}

StepGraph & StepGraphs::find(const Minibatch & batch) {
    const std::string key = StepGraph::key(batch);
    for (auto kept = graphs_.begin(); kept != graphs_.end(); ++kept) {
        if (kept->key == key) {
            graphs_.splice(graphs_.begin(), graphs_, kept);
            return *graphs_.front().graph;
        }
    }
    if (graphs_.size() == kMaxGraphs) {
        graphs_.pop_back();
    }
    graphs_.push_front({ key, std::make_unique<StepGraph>(objective_, model_, batch, backend_, trained_) });
    return *graphs_.front().graph;
}

StepLoss StepGraphs::run(const Minibatch & batch, float loss_scale) {
    StepGraph & graph = find(batch);
    StepLoss    loss  = graph.run(batch, workspace_, loss_scale);
    n_nodes_          = graph.graph().n_nodes();
    return loss;
}

} // namespace penelope
