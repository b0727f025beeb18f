#include "train/batch_graph.h"

#include <algorithm>

namespace penelope {

namespace {

// Limit of the cache: a graph takes some megabytes, and unpadded lengths rarely repeat.
constexpr size_t kMaxGraphs = 2, kMaxPaddedGraphs = 8;

// Labels and loss weights: targets, then step targets, then teacher tokens.
struct Labels {
    std::vector<int32_t> tokens;
    std::vector<bool>    counts;

    void add(int32_t token, bool is_counted) {
        tokens.push_back(token);
        counts.push_back(is_counted);
    }

    // Each kind enters with its mean, step targets times step_loss_weight.
    std::vector<float> weights(const Minibatch & batch, float loss_scale) const {
        const size_t       n_targets = size_t(batch.n_targets()), n_step_targets = size_t(batch.n_step_targets());
        const float        target  = float(loss_scale * batch.target_weight());
        const float        thought = float(loss_scale * batch.step_loss_weight * batch.step_target_weight());
        const float        taught  = float(loss_scale * batch.teacher_token_weight());
        std::vector<float> all(counts.size(), 0.0f);
        for (size_t i = 0; i < all.size(); i++) {
            all[i] = !counts[i] ? 0.0f : i < n_targets ? target : i < n_targets + n_step_targets ? thought : taught;
        }
        return all;
    }

    double sum(const std::vector<float> & losses, size_t first, size_t last) const {
        double total = 0;
        for (size_t i = first; i < last; i++) {
            total += counts[i] ? double(losses[i]) : 0.0;
        }
        return total;
    }
};

Labels labels_of(const Minibatch & batch) {
    Labels labels;
    for (const TokenizedExample & example : batch.examples) {
        for (size_t i = 0; i < example.target.size(); i++) {
            labels.add(example.target[i], example.is_supervised && i < example.n_target());
        }
    }
    for (size_t t = 0; batch.n_step_target_rows > 0 && t < size_t(batch.n_steps); t++) {
        for (const TokenizedExample & example : batch.examples) {
            for (size_t i = 0; i < size_t(batch.n_step_target_rows); i++) {
                const bool says = t < example.step_targets.size() && i < example.step_targets[t].size();
                labels.add(says ? example.step_targets[t][i] : 0, says);
            }
        }
    }
    for (const TokenizedExample & example : batch.examples) {
        for (const std::vector<int32_t> * tokens : { &example.trace, &example.target }) {
            for (size_t i = 0; batch.has_teacher && i < tokens->size(); i++) {
                labels.add((*tokens)[i], true);
            }
        }
    }
    return labels;
}

// Losses of the targets without padding.
std::vector<float> own_tokens(const Minibatch & batch, const std::vector<float> & losses) {
    std::vector<float> own;
    auto               next = losses.begin();
    for (const TokenizedExample & example : batch.examples) {
        own.insert(own.end(), next, next + ptrdiff_t(example.n_target()));
        next += ptrdiff_t(example.target.size());
    }
    return own;
}

} // namespace

std::string BatchGraph::key(const Minibatch & batch) {
    std::string text = std::to_string(batch.n_steps) + "/" + std::to_string(batch.n_step_target_rows);
    text += "/" + std::to_string(batch.n_forced());
    text += batch.is_padded ? "p" : "";
    for (const TokenizedExample & example : batch.examples) {
        text += ":" + std::to_string(example.prompt.size()) + "," + std::to_string(example.target.size());
        if (batch.has_teacher) {
            text += "," + std::to_string(example.trace.size()) + "," + std::to_string(example.distill_position);
        }
    }
    return text;
}

BatchGraph::BatchGraph(const Objective & objective, const Backbone & model, const Minibatch & like,
                       const Backend & backend, const Optimizer * trained, const AllGatherFloats & gather)
    : objective_(objective), backend_(backend), graph_(trained ? &tape_ : nullptr, &backend),
      inputs_(model.config, gather, like.is_padded) {
    tape_.set_host_kernels(backend.device().is_cpu);
    if (trained) {
        trained->watch(tape_);
    }
    ids_                        = graph_.input("ids", GGML_TYPE_I32, int64_t(objective.input_tokens(like).size()));
    targets_                    = graph_.input("targets", GGML_TYPE_I32, like.n_labels());
    weights_                    = graph_.input("weights", GGML_TYPE_F32, like.n_labels());
    Node                 tokens = embed_tokens(graph_, model, ids_); // [n_embd, n_rows]
    const BuiltObjective built  = objective.build(graph_, model, like, tokens, inputs_);
    loss_ = cross_entropy(graph_, model.head, head_input(graph_, model, built.rows), targets_, weights_);
    graph_.output(loss_.rows);
    Node total = loss_.loss;
    if (built.distance) {
        distance_ = built.distance;
        graph_.output(distance_);
        if (trained) {
            distill_weight_ = graph_.input("distance.weight", GGML_TYPE_F32, 1);
            total           = add(graph_, total, mul_scalar(graph_, distance_, distill_weight_));
        }
    }
    if (trained) {
        tape_.backward(graph_, total);
        trained->collect(graph_, tape_);
    }
}

BatchLoss BatchGraph::run(const Minibatch & batch, Workspace & workspace, float loss_scale) {
    const Labels labels = labels_of(batch);
    graph_.allocate(backend_, workspace);
    inputs_.fill(graph_, batch);
    graph_.set(ids_, objective_.input_tokens(batch));
    graph_.set(targets_, labels.tokens);
    graph_.set(weights_, labels.weights(batch, loss_scale));
    if (distill_weight_) {
        graph_.set(distill_weight_, std::vector<float>{ float(loss_scale * batch.distill_weight * batch.fraction) });
    }
    graph_.compute(backend_);

    BatchLoss loss;
    loss.tokens         = get_node(loss_.rows);
    const size_t middle = size_t(batch.n_targets());
    loss.mean           = batch.target_weight() * labels.sum(loss.tokens, 0, middle);
    const size_t taught = middle + size_t(batch.n_step_targets());
    loss.steps          = batch.step_target_weight() * labels.sum(loss.tokens, middle, taught);
    loss.teacher        = batch.teacher_token_weight() * labels.sum(loss.tokens, taught, loss.tokens.size());
    loss.distance       = distance_ ? batch.fraction * double(get_node(distance_)[0]) : 0.0;
    loss.step_targets.assign(loss.tokens.begin() + ptrdiff_t(middle), loss.tokens.begin() + ptrdiff_t(taught));
    loss.tokens = own_tokens(batch, loss.tokens);
    return loss;
}

BatchGraph & BatchGraphCache::find(const Minibatch & batch) {
    const std::string key = BatchGraph::key(batch);
    for (auto entry = graphs_.begin(); entry != graphs_.end(); ++entry) {
        if (entry->key == key) {
            graphs_.splice(graphs_.begin(), graphs_, entry);
            return *graphs_.front().graph;
        }
    }
    if (graphs_.size() >= (batch.is_padded ? kMaxPaddedGraphs : kMaxGraphs)) {
        graphs_.pop_back();
    }
    graphs_.push_front({ key, std::make_unique<BatchGraph>(objective_, model_, batch, backend_, trained_, gather_) });
    return *graphs_.front().graph;
}

BatchLoss BatchGraphCache::run(const Minibatch & batch, float loss_scale) {
    BatchGraph & graph = find(batch);
    BatchLoss    loss  = graph.run(batch, workspace_, loss_scale);
    n_nodes_           = graph.graph().n_nodes();
    return loss;
}

} // namespace penelope
