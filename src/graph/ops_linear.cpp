// Matrix products: linear layers with an optional low-rank update, and the embedding look-up.
#include "graph/ops.h"

namespace penelope {

Node linear(Graph & g, const Linear & layer, Node x) {
    ggml_context * ctx = g.ctx();
    Node           y   = ggml_mul_mat(ctx, layer.weight, x); // [n_out, rows]
    if (layer.lora.a) {
        Node h     = ggml_mul_mat(ctx, layer.lora.a, x);     // [rank, rows]
        Node delta = ggml_mul_mat(ctx, layer.lora.b, h);     // [n_out, rows]
        if (layer.lora.scale != 1.0f) {
            delta = ggml_scale(ctx, delta, layer.lora.scale);
        }
        y = ggml_add(ctx, y, delta);
    }
    if (layer.bias) {
        y = ggml_add(ctx, y, layer.bias);
    }
    return y;
}

Node embed(Graph & g, Node table, Node ids) { return ggml_get_rows(g.ctx(), table, ids); }

} // namespace penelope
