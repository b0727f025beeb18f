#include "graph/tape.h"

namespace penelope {

void Tape::watch(Node leaf) {
    wanted_[leaf] = true;
    leaves_.push_back(leaf);
}

bool Tape::wants(const ggml_tensor * node) const { return node && wanted_.count(node) > 0; }

void Tape::record(Node result, Rule rule) {
    wanted_[result] = true;
    entries_.push_back({result, std::move(rule)});
}

void Tape::accumulate(Graph & graph, Node node, Node gradient) {
    if (!wants(node)) {
        return;
    }
    GGML_ASSERT(ggml_are_same_shape(node, gradient));
    if (!ggml_is_contiguous(gradient)) {
        gradient = ggml_cont(graph.ctx(), gradient);
    }
    Node & sum = gradients_[node];
    sum        = sum ? ggml_add(graph.ctx(), sum, gradient) : gradient;
}

void Tape::backward(Graph & graph, Node result, Node gradient) {
    accumulate(graph, result, gradient);
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
        const auto found = gradients_.find(entry->result);
        if (found == gradients_.end()) {
            continue;
        }
        const Node arrived = found->second;
        // Rules come in the reverse order of use, so this gradient is complete: settle it before going on.
        graph.expand(arrived);
        entry->rule(graph, arrived);
    }
    for (Node leaf : leaves_) {
        if (Node sum = this->gradient(leaf)) {
            graph.expand(sum);
        }
    }
}

Node Tape::gradient(const ggml_tensor * node) const {
    const auto found = gradients_.find(node);
    return found == gradients_.end() ? nullptr : found->second;
}

} // namespace penelope
