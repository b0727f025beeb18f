// Exact GELU, x Phi(x), with its derivative Phi(x) + x phi(x), and the approximation with a hyperbolic tangent.
#include "graph/ops.h"
#include "graph/tape.h"

namespace penelope {

namespace {

constexpr float kInverseRootTwoPi = 0.3989422804f;
constexpr float kTwoRootTwoOverPi = 1.5957691216f; // 2 sqrt(2 / pi)
constexpr float kCubic            = 0.044715f;
constexpr float kAway             = 1e-4f; // offset from zero, where gelu(x) / x is undefined; changes Phi by 4e-5

// ggml has no operation for Phi: with u = |x| + kAway, Phi(u) = gelu(u) / u and Phi(-u) = 1 - Phi(u).
Node normal_distribution(ggml_context * ctx, Node x) {
    Node u    = ggml_scale_bias(ctx, ggml_abs(ctx, x), 1.0f, kAway);
    Node half = ggml_scale_bias(ctx, ggml_div(ctx, ggml_gelu_erf(ctx, u), u), 1.0f, -0.5f);
    return ggml_scale_bias(ctx, ggml_mul(ctx, half, ggml_sgn(ctx, x)), 1.0f, 0.5f);
}

} // namespace

Node gelu(Graph & g, Node a) {
    Node y = ggml_gelu_erf(g.ctx(), a);
    if (g.tape() && g.tape()->requires_grad(a)) {
        g.tape()->record(y, [a](Graph & graph, Node dy) {
            ggml_context * ctx     = graph.ctx();
            Node           density = ggml_exp(ctx, ggml_scale(ctx, ggml_sqr(ctx, a), -0.5f));
            Node           slope   = ggml_add(ctx, normal_distribution(ctx, a),
                                              ggml_scale(ctx, ggml_mul(ctx, a, density), kInverseRootTwoPi));
            graph.tape()->accumulate(graph, a, ggml_mul(ctx, slope, dy));
        });
    }
    return y;
}

// x (1 + tanh(z / 2)) / 2 = x sigmoid(z) with z = 2 sqrt(2 / pi) (x + 0.044715 x^3). Not ggml_gelu(): on the CPU that
// reads a table in F16.
Node gelu_tanh(Graph & g, Node a) {
    Node z = mul(g, a, scale(g, mul(g, a, a), kTwoRootTwoOverPi * kCubic, kTwoRootTwoOverPi));
    return mul(g, a, sigmoid(g, z));
}

} // namespace penelope
