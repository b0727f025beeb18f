#include "graph/ops_distill.h"

#include "graph/tape.h"

namespace penelope {

namespace {

Node deviation(ggml_context * ctx, Node x) {
    const float n        = float(ggml_nelements(x));
    Node        mean     = ggml_scale(ctx, ggml_sum(ctx, x), 1.0f / n);
    Node        centered = ggml_sub(ctx, x, mean);
    return ggml_sqrt(ctx, ggml_scale(ctx, ggml_sum(ctx, ggml_sqr(ctx, centered)), 1.0f / (n - 1.0f)));
}

// The slope of SmoothL1: x between -1 and 1, its sign beyond.
Node limited(ggml_context * ctx, Node x) {
    Node above = ggml_relu(ctx, ggml_scale_bias(ctx, x, 1.0f, 1.0f));
    Node below = ggml_relu(ctx, ggml_scale_bias(ctx, x, 1.0f, -1.0f));
    return ggml_scale_bias(ctx, ggml_sub(ctx, above, below), 1.0f, -1.0f);
}

} // namespace

Node distillation(Graph & g, Node student, Node teacher) {
    ggml_context * ctx   = g.ctx();
    const float    n     = float(ggml_nelements(student));
    Node           apart = ggml_sub(ctx, student, teacher);
    Node           slope = limited(ctx, apart);
    // c^2 / 2 + |x| - |c| is x^2 / 2 where c = x, and |x| - 1/2 where |c| = 1.
    Node smooth = ggml_add(ctx, ggml_scale(ctx, ggml_sqr(ctx, slope), 0.5f),
                           ggml_sub(ctx, ggml_abs(ctx, apart), ggml_abs(ctx, slope)));
    Node spread = deviation(ctx, teacher);
    Node y      = ggml_div(ctx, ggml_scale(ctx, ggml_sum(ctx, smooth), 1.0f / n), spread);
    if (g.tape() && g.tape()->wants(student)) {
        g.tape()->record(y, [student, slope, spread, n](Graph & graph, Node dy) {
            ggml_context * c      = graph.ctx();
            Node           factor = ggml_scale(c, ggml_div(c, dy, spread), 1.0f / n);
            graph.tape()->accumulate(graph, student, ggml_mul(c, slope, factor));
        });
    }
    return y;
}

} // namespace penelope
