// Element-wise operations. dy is the gradient of the result y throughout.
#include "graph/ops.h"

#include "graph/kernels.h"
#include "graph/nodes.h"
#include "graph/tape.h"

namespace penelope {

Node add(Graph & g, Node a, Node b) {
    Node   y    = ggml_add(g.ctx(), a, b);
    Tape * tape = g.tape();
    if (tape && (tape->requires_grad(a) || tape->requires_grad(b))) {
        tape->record(y, [a, b](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, a, dy);
            if (graph.tape()->requires_grad(b)) {
                graph.tape()->accumulate(graph, b, sum_to(graph, dy, b));
            }
        });
    }
    return y;
}

Node sub(Graph & g, Node a, Node b) {
    Node   y    = ggml_sub(g.ctx(), a, b);
    Tape * tape = g.tape();
    if (tape && (tape->requires_grad(a) || tape->requires_grad(b))) {
        tape->record(y, [a, b](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, a, dy);
            if (graph.tape()->requires_grad(b)) {
                graph.tape()->accumulate(graph, b, ggml_neg(graph.ctx(), sum_to(graph, dy, b)));
            }
        });
    }
    return y;
}

namespace {

// sum_for: reduces the gradient of the broadcast b to its shape.
Node product(Graph & g, Node a, Node b, Node (*sum_for)(Graph & g, Node x, Node like)) {
    Node   y    = ggml_mul(g.ctx(), a, b);
    Tape * tape = g.tape();
    if (tape && (tape->requires_grad(a) || tape->requires_grad(b))) {
        tape->record(y, [a, b, sum_for](Graph & graph, Node dy) {
            if (graph.tape()->requires_grad(a)) {
                graph.tape()->accumulate(graph, a, ggml_mul(graph.ctx(), dy, b));
            }
            if (graph.tape()->requires_grad(b)) {
                graph.tape()->accumulate(graph, b, sum_for(graph, ggml_mul(graph.ctx(), dy, a), b));
            }
        });
    }
    return y;
}

} // namespace

Node mul(Graph & g, Node a, Node b) {
    return product(g, a, b, sum_to);
}

Node mul_scalar(Graph & g, Node a, Node b) {
    return product(g, a, b, [](Graph & graph, Node x, Node) { return ggml_sum(graph.ctx(), x); });
}

Node scale(Graph & g, Node a, float factor, float offset) {
    Node y = ggml_scale_bias(g.ctx(), a, factor, offset);
    if (g.tape() && g.tape()->requires_grad(a)) {
        g.tape()->record(y, [a, factor](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, a, factor == 1.0f ? dy : ggml_scale(graph.ctx(), dy, factor));
        });
    }
    return y;
}

Node tanh(Graph & g, Node a) {
    Node y = ggml_tanh(g.ctx(), a);
    if (g.tape() && g.tape()->requires_grad(a)) {
        g.tape()->record(y, [a, y](Graph & graph, Node dy) {
            ggml_context * ctx   = graph.ctx();
            Node           slope = ggml_scale_bias(ctx, ggml_sqr(ctx, y), -1.0f, 1.0f); // 1 - y^2
            graph.tape()->accumulate(graph, a, ggml_mul(ctx, slope, dy));
        });
    }
    return y;
}

Node sigmoid(Graph & g, Node a) {
    Node y = ggml_sigmoid(g.ctx(), a);
    if (g.tape() && g.tape()->requires_grad(a)) {
        g.tape()->record(y, [a, y](Graph & graph, Node dy) {
            ggml_context * ctx   = graph.ctx();
            Node           slope = ggml_mul(ctx, ggml_scale_bias(ctx, y, -1.0f, 1.0f), y); // (1 - y) y
            graph.tape()->accumulate(graph, a, ggml_mul(ctx, slope, dy));
        });
    }
    return y;
}

Node silu(Graph & g, Node a) {
    Node y = ggml_silu(g.ctx(), a);
    if (g.tape() && g.tape()->requires_grad(a)) {
        g.tape()->record(
            y, [a](Graph & graph, Node dy) { graph.tape()->accumulate(graph, a, ggml_silu_back(graph.ctx(), dy, a)); });
    }
    return y;
}

Node swiglu(Graph & g, Node gate, Node up) {
    Node   y    = ggml_swiglu_split(g.ctx(), gate, up);
    Tape * tape = g.tape();
    if (tape && (tape->requires_grad(gate) || tape->requires_grad(up))) {
        tape->record(y, [gate, up](Graph & graph, Node dy) {
            ggml_context * ctx = graph.ctx();
            if (graph.tape()->requires_grad(up)) {
                graph.tape()->accumulate(graph, up, ggml_swiglu_split(ctx, gate, dy));
            }
            if (graph.tape()->requires_grad(gate)) {
                graph.tape()->accumulate(graph, gate,
                                         graph.tape()->host_kernels()
                                             ? cpu_swiglu_gate_back(graph, dy, gate, up)
                                             : ggml_silu_back(ctx, ggml_mul(ctx, dy, up), gate));
            }
        });
    }
    return y;
}

Node dropout_again(Graph & g, Node x, const Dropout & source, const Draw & draw) {
    const bool on_host = !g.tape() || g.tape()->host_kernels();
    return on_host ? cpu_dropout(g, x, source, draw) : device_dropout(g, x, source, draw);
}

Node dropout(Graph & g, Node x, const Dropout & source) {
    const Draw draw = next_draw(g, x);
    Node       y    = dropout_again(g, x, source, draw);
    if (g.tape() && g.tape()->requires_grad(x)) {
        g.tape()->record(y, [x, &source, draw](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, x, dropout_again(graph, dy, source, draw));
        });
    }
    return y;
}

} // namespace penelope
