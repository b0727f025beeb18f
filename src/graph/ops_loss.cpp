#include "graph/ops_loss.h"

#include "graph/kernels.h"
#include "graph/nodes.h"
#include "graph/tape.h"

#include <algorithm>
#include <cfloat>

namespace penelope {

namespace {

// Vocabulary entries summed at a time. More would fall out of the L2 cache and lose precision.
constexpr int64_t kVocabularyChunk = 4096;

Node rows_of(Graph & g, Node x, int64_t first, int64_t n) {
    return ggml_view_2d(g.ctx(), x, x->ne[0], n, x->nb[1], size_t(first) * x->nb[1]);
}

// [n, d]: the transpose of head rows first .. first + n - 1, a view of the stored transpose or dequantized here.
Node head_columns(Graph & g, const Linear & head, int64_t first, int64_t n) {
    ggml_context * ctx = g.ctx();
    Node           all = g.tape()->requires_grad(head.weight) ? g.tape()->transposed(g, head.weight) : head.transposed;
    if (all) {
        return ggml_view_2d(ctx, all, n, all->ne[1], all->nb[1], ggml_row_size(all->type, first));
    }
    return transpose_copy(g, dequantized(g, rows_of(g, head.weight, first, n)));
}

// sum over v of probabilities[v] * W[v]: [n_vocab, n] -> [d, n].
Node expected_rows(Graph & g, const Linear & head, Node probabilities) {
    const int64_t n_vocab = probabilities->ne[0];
    Node          sum     = nullptr;
    for (int64_t first = 0; first < n_vocab; first += kVocabularyChunk) {
        ggml_context * ctx  = g.ctx();
        const int64_t  n    = std::min(kVocabularyChunk, n_vocab - first);
        Node           part = ggml_view_2d(ctx, probabilities, n, probabilities->ne[1], probabilities->nb[1],
                                           size_t(first) * sizeof(float));
        Node           term = nullptr;
        if (g.tape()->host_kernels()) {
            term = cpu_weighted_rows(g, rows_of(g, head.weight, first, n), part);
        } else {
            term = matrix_product(g, head_columns(g, head, first, n), ggml_cont(ctx, part));
        }
        sum = sum ? ggml_add(ctx, sum, term) : term;
        g.expand(sum);
    }
    return sum;
}

Node entries_of(Graph & g, Node x, int64_t first, int64_t n) {
    return ggml_view_1d(g.ctx(), x, n, size_t(first) * ggml_element_size(x));
}

Node times_seed(Graph & g, Node gradient, Node seed) {
    return g.tape()->is_unit_seed(seed) ? gradient : ggml_mul(g.ctx(), gradient, seed);
}

} // namespace

CrossEntropy cross_entropy(Graph & g, const Linear & head, Node hidden, Node targets, Node weights,
                           size_t max_logit_bytes) {
    GGML_ASSERT(!head.bias && !head.lora.a);
    ggml_context * ctx               = g.ctx();
    Tape *         tape              = g.tape();
    const bool     needs_hidden_grad = tape && tape->requires_grad(hidden);
    const bool     needs_head_grad   = tape && tape->requires_grad(head.weight);
    const int64_t  n_vocab           = head.weight->ne[1];
    const int64_t  n_rows            = hidden->ne[1];
    const int64_t  most        = std::max<int64_t>(1, int64_t(max_logit_bytes / (sizeof(float) * size_t(n_vocab))));
    const int64_t  n_chunks    = (n_rows + most - 1) / most;
    const int64_t  chunk       = (n_rows + n_chunks - 1) / n_chunks;
    Node           row_weights = ggml_reshape_2d(ctx, weights, 1, n_rows);
    // w_i h_i, for the gradient of the head.
    Node weighted = needs_head_grad ? ggml_mul(ctx, hidden, row_weights) : nullptr; // [d, rows]

    std::vector<Node> losses, d_hidden;
    Node              d_head = nullptr;
    for (int64_t first = 0; first < n_rows; first += chunk) {
        ctx                  = g.ctx();
        const int64_t n      = std::min(chunk, n_rows - first);
        Node          target = entries_of(g, targets, first, n);
        Node          logits = matrix_product(g, head.weight, rows_of(g, hidden, first, n)); // [n_vocab, n]
        Node          soft   = ggml_soft_max(ctx, logits);
        Node          each   = ggml_reshape_3d(ctx, soft, 1, n_vocab, n);
        Node          found  = ggml_get_rows(ctx, each, ggml_reshape_2d(ctx, target, 1, n)); // [1, 1, n]
        // Adding FLT_MIN keeps the logarithm finite and passes a NaN on.
        Node loss = ggml_neg(ctx, ggml_log(ctx, ggml_scale_bias(ctx, ggml_reshape_1d(ctx, found, n), 1.0f, FLT_MIN)));
        losses.push_back(loss);
        g.expand(loss);
        if (needs_hidden_grad) {
            // w (sum_v p_v W_v - W_target)
            Node surplus = ggml_sub(ctx, expected_rows(g, head, soft), ggml_get_rows(ctx, head.weight, target));
            d_hidden.push_back(ggml_mul(ctx, surplus, rows_of(g, row_weights, first, n)));
            g.expand(d_hidden.back());
        }
        if (needs_head_grad) {
            // sum_i w_i h_i p_i^T; the targets are subtracted below
            Node term = matrix_product(g, transpose_padded(g, rows_of(g, weighted, first, n)),
                                       transpose_padded(g, soft)); // [d, n_vocab]
            d_head    = d_head ? ggml_add(ctx, d_head, term) : term;
            g.expand(d_head);
        }
    }
    if (needs_head_grad) {
        d_head = ggml_sub(ctx, d_head, ggml_get_rows_back(ctx, weighted, targets, head.weight));
        g.expand(d_head);
    }

    CrossEntropy result{};
    result.rows = losses.front();
    for (size_t i = 1; i < losses.size(); i++) {
        result.rows = ggml_concat(g.ctx(), result.rows, losses[i], 0);
    }
    result.loss = ggml_sum(ctx, ggml_mul(ctx, result.rows, weights));
    if (needs_hidden_grad || needs_head_grad) {
        tape->record(result.loss, [hidden, weight = head.weight, d_hidden, d_head](Graph & graph, Node seed) {
            if (!d_hidden.empty()) {
                graph.tape()->accumulate(graph, hidden, times_seed(graph, join_rows(graph, d_hidden), seed));
            }
            if (d_head) {
                graph.tape()->accumulate(graph, weight, times_seed(graph, d_head, seed));
            }
        });
    }
    return result;
}

} // namespace penelope
