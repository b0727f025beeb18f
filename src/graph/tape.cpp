#include "graph/tape.h"

#include "graph/nodes.h"

#include <algorithm>

namespace penelope {

void Tape::watch(Node leaf) {
    requires_grad_[leaf] = true;
    leaves_.push_back(leaf);
}

bool Tape::requires_grad(const ggml_tensor * node) const {
    return node && (owns(node) || (outer_ && outer_->requires_grad(node)));
}

void Tape::record(Node result, BackwardFn rule) {
    record(std::vector<Node>{ result }, [rule = std::move(rule)](Graph & graph, const std::vector<Node> & gradients) {
        rule(graph, gradients.front());
    });
}

void Tape::record(std::vector<Node> results, MultiBackwardFn rule) {
    for (Node result : results) {
        requires_grad_[result] = true;
    }
    entries_.push_back({ std::move(results), std::move(rule) });
}

std::vector<Node> Tape::recorded() const {
    std::vector<Node> nodes;
    for (const Entry & entry : entries_) {
        nodes.insert(nodes.end(), entry.results.begin(), entry.results.end());
    }
    return nodes;
}

void Tape::accumulate(Graph & graph, Node node, Node gradient) {
    if (!requires_grad(node)) {
        return;
    }
    if (!owns(node)) {
        outer_->accumulate(graph, node, gradient);
        return;
    }
    GGML_ASSERT(ggml_are_same_shape(node, gradient));
    if (!ggml_is_contiguous(gradient)) {
        gradient = ggml_cont(graph.ctx(), gradient);
    }
    Node & sum = gradients_[node];
    sum        = sum ? ggml_add(graph.ctx(), sum, gradient) : gradient;
    // Expand now, even if it is used much later: its operands can then be freed early.
    graph.expand(sum);
}

void Tape::accumulate_slice(Graph & graph, Node node, int dim, int64_t first, Node gradient) {
    if (!requires_grad(node)) {
        return;
    }
    if (!owns(node)) {
        outer_->accumulate_slice(graph, node, dim, first, gradient);
        return;
    }
    graph.expand(gradient);
    slices_[node].push_back({ dim, first, gradient });
}

// The sum of all gradients and slices accumulated for `node`; null when there are none.
Node Tape::finalize_grad(Graph & graph, Node node) {
    const auto found  = gradients_.find(node);
    Node       sum    = found == gradients_.end() ? nullptr : found->second;
    const auto pieces = slices_.find(node);
    if (pieces == slices_.end()) {
        return sum;
    }
    std::vector<Slice> slices = std::move(pieces->second);
    slices_.erase(pieces);
    std::stable_sort(slices.begin(), slices.end(), [](const Slice & a, const Slice & b) { return a.first < b.first; });

    // A slice that overlaps no other is copied into zeros instead of added. In-place writes only go to a node created
    // here.
    const int  dim = slices.front().dim;
    const bool copy =
        !sum && std::all_of(slices.begin(), slices.end(), [dim](const Slice & s) { return s.dim == dim; });
    bool    own = !sum;
    int64_t end = 0;
    sum         = sum ? sum : zeros_like(graph, node);
    for (const Slice & slice : slices) {
        ggml_context * ctx    = graph.ctx();
        const size_t   offset = size_t(slice.first) * node->nb[slice.dim];
        if (copy && slice.first >= end) {
            sum = ggml_set_2d_inplace(ctx, sum, slice.gradient, sum->nb[1], offset);
        } else if (own) {
            sum = ggml_acc_inplace(ctx, sum, slice.gradient, sum->nb[1], sum->nb[2], sum->nb[3], offset);
        } else {
            sum = ggml_acc(ctx, sum, slice.gradient, sum->nb[1], sum->nb[2], sum->nb[3], offset);
            own = true;
        }
        end = std::max(end, slice.first + slice.gradient->ne[slice.dim]);
    }
    graph.expand(sum);
    gradients_[node] = sum;
    return sum;
}

void Tape::expect_product(Node weight) {
    Product & product = products_[weight];
    if (product.n_expected == 0 && product.x.empty()) {
        product_weights_.push_back(weight);
    }
    product.n_expected++;
}

void Tape::accumulate_product(Graph & graph, Node weight, Node x, Node dy) {
    Product & product = products_[weight];
    product.x.push_back(x);
    product.dy.push_back(dy);
    if (--product.n_expected == 0) {
        build_product(graph, weight);
    }
}

void Tape::build_product(Graph & graph, Node weight) {
    Product & product = products_[weight];
    if (product.x.empty()) {
        return;
    }
    Node x_t  = concat_transposed(graph, product.x);  // [rows, n_in]
    Node dy_t = concat_transposed(graph, product.dy); // [rows, n_out]
    product.x.clear();
    product.dy.clear();
    accumulate(graph, weight, matrix_product(graph, x_t, dy_t)); // [n_in, n_out]
}

Node Tape::transposed(Graph & graph, Node node) {
    Node & copy = transposed_[node];
    if (!copy) {
        copy = transpose_copy(graph, node);
    }
    return copy;
}

// Cached: projections that read the same rows share the transpose.
Node Tape::concat_transposed(Graph & graph, const std::vector<Node> & parts) {
    Node & copy = concat_transposed_[parts];
    if (!copy) {
        copy = transpose_padded(graph, join_rows(graph, parts));
    }
    return copy;
}

bool Tape::is_unit_seed(const ggml_tensor * node) const {
    return (one_ && node == one_) || (outer_ && outer_->is_unit_seed(node));
}

void Tape::backward(Graph & graph, Node result, Node gradient) {
    graph.expand(result);
    if (!gradient) {
        one_     = ggml_fill(graph.ctx(), result, 1.0f);
        gradient = one_;
    }
    backward(graph, std::vector<Node>{ result }, { gradient });
}

void Tape::backward(Graph & graph, const std::vector<Node> & results, const std::vector<Node> & gradients) {
    for (size_t i = 0; i < results.size(); i++) {
        if (gradients[i]) {
            accumulate(graph, results[i], gradients[i]);
        }
    }
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
        // Backward functions run in reverse order of use, so the gradients of these results are complete now.
        std::vector<Node> grads;
        bool              any = false;
        for (Node result : entry->results) {
            grads.push_back(finalize_grad(graph, result));
            any = any || grads.back();
        }
        if (any) {
            entry->rule(graph, grads);
        }
    }
    for (Node weight : product_weights_) {
        build_product(graph, weight);
    }
    for (Node leaf : leaves_) {
        finalize_grad(graph, leaf);
    }
}

Node Tape::gradient(const ggml_tensor * node) const {
    const auto found = gradients_.find(node);
    return found == gradients_.end() ? nullptr : found->second;
}

} // namespace penelope
