#include "graph/ops_distill.h"

#include "graph/tape.h"

#include <cmath>

namespace penelope {

namespace {

struct MomentNodes {
    Node mean, squares; // [1]
};
MomentNodes moment_nodes(ggml_context * ctx, Node x) {
    Node mean = ggml_scale(ctx, ggml_sum(ctx, x), 1.0f / float(ggml_nelements(x)));
    return { mean, ggml_sum(ctx, ggml_sqr(ctx, ggml_sub(ctx, x, mean))) };
}

// Derivative of SmoothL1: x clamped to [-1, 1].
Node smooth_l1_slope(ggml_context * ctx, Node x) {
    Node above = ggml_relu(ctx, ggml_scale_bias(ctx, x, 1.0f, 1.0f));
    Node below = ggml_relu(ctx, ggml_scale_bias(ctx, x, 1.0f, -1.0f));
    return ggml_scale_bias(ctx, ggml_sub(ctx, above, below), 1.0f, -1.0f);
}

} // namespace

Node standard_deviation(Graph & g, Node x) {
    const float n = float(ggml_nelements(x));
    return ggml_sqrt(g.ctx(), ggml_scale(g.ctx(), moment_nodes(g.ctx(), x).squares, 1.0f / (n - 1.0f)));
}

Node moments(Graph & g, Node x) {
    const MomentNodes nodes = moment_nodes(g.ctx(), x);
    return ggml_concat(g.ctx(), nodes.mean, nodes.squares, 0);
}

double standard_deviation(const std::vector<Moments> & parts) {
    double n = 0, sum = 0, squares = 0;
    for (const Moments & part : parts) {
        n += part.n;
        sum += part.n * part.mean;
    }
    for (const Moments & part : parts) {
        const double difference = part.mean - sum / n;
        squares += part.squares + part.n * difference * difference;
    }
    return std::sqrt(squares / (n - 1.0));
}

Node distillation(Graph & g, Node student, Node teacher, Node stddev) {
    ggml_context * ctx        = g.ctx();
    const float    n          = float(ggml_nelements(student));
    Node           difference = ggml_sub(ctx, student, teacher);
    Node           slope      = smooth_l1_slope(ctx, difference);
    // c^2 / 2 + |x| - |c| is x^2 / 2 where c = x, and |x| - 1/2 where |c| = 1.
    Node smooth = ggml_add(ctx, ggml_scale(ctx, ggml_sqr(ctx, slope), 0.5f),
                           ggml_sub(ctx, ggml_abs(ctx, difference), ggml_abs(ctx, slope)));
    Node y      = ggml_div(ctx, ggml_scale(ctx, ggml_sum(ctx, smooth), 1.0f / n), stddev);
    if (g.tape() && g.tape()->requires_grad(student)) {
        g.tape()->record(y, [student, slope, stddev, n](Graph & graph, Node dy) {
            ggml_context * c      = graph.ctx();
            Node           factor = ggml_scale(c, ggml_div(c, dy, stddev), 1.0f / n);
            graph.tape()->accumulate(graph, student, ggml_mul(c, slope, factor));
        });
    }
    return y;
}

} // namespace penelope
