// Normalizations over the features of each row.
#include "graph/ops.h"

#include "graph/nodes.h"
#include "graph/tape.h"

namespace penelope {

Node rms_norm(Graph & g, Node x, Node weight, float eps) {
    Node   unit = ggml_rms_norm(g.ctx(), x, eps);
    Node   y    = weight ? ggml_mul(g.ctx(), unit, weight) : unit;
    Tape * tape = g.tape();
    if (tape && (tape->requires_grad(x) || tape->requires_grad(weight))) {
        tape->record(y, [x, weight, unit, eps](Graph & graph, Node dy) {
            ggml_context * ctx = graph.ctx();
            if (graph.tape()->requires_grad(weight)) {
                graph.tape()->accumulate(graph, weight, sum_to(graph, ggml_mul(ctx, dy, unit), weight));
            }
            if (graph.tape()->requires_grad(x)) {
                Node d_unit = weight ? ggml_mul(ctx, dy, weight) : dy;
                graph.tape()->accumulate(graph, x, ggml_rms_norm_back(ctx, d_unit, x, eps));
            }
        });
    }
    return y;
}

namespace {

// Subtracts the mean of each row.
Node centred(Graph & g, Node x) {
    return ggml_sub(g.ctx(), x, ggml_mean(g.ctx(), x));
}

} // namespace

Node layer_norm(Graph & g, Node x, Node weight, Node bias, float eps) {
    Node   unit = ggml_norm(g.ctx(), x, eps);
    Node   y    = ggml_add(g.ctx(), ggml_mul(g.ctx(), unit, weight), bias);
    Tape * tape = g.tape();
    if (tape && (tape->requires_grad(x) || tape->requires_grad(weight) || tape->requires_grad(bias))) {
        tape->record(y, [x, weight, bias, unit, eps](Graph & graph, Node dy) {
            ggml_context * ctx = graph.ctx();
            if (graph.tape()->requires_grad(bias)) {
                graph.tape()->accumulate(graph, bias, sum_to(graph, dy, bias));
            }
            if (graph.tape()->requires_grad(weight)) {
                graph.tape()->accumulate(graph, weight, sum_to(graph, ggml_mul(ctx, dy, unit), weight));
            }
            if (graph.tape()->requires_grad(x)) {
                // LayerNorm is RMSNorm of the centred row, and the centring matrix is symmetric.
                Node d_unit = ggml_mul(ctx, dy, weight);
                Node dx     = centred(graph, ggml_rms_norm_back(ctx, d_unit, centred(graph, x), eps));
                graph.tape()->accumulate(graph, x, dx);
            }
        });
    }
    return y;
}

} // namespace penelope
