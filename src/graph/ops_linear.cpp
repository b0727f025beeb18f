// Matrix products: linear layers with an optional low-rank update, and the embedding look-up.
#include "graph/ops.h"

#include "graph/nodes.h"
#include "graph/tape.h"

namespace penelope {

namespace {

// [n_out, n_in] for dx = W^T dy.
Node weight_transposed(Graph & g, const Linear & layer) {
    if (g.tape()->wants(layer.weight)) {
        return g.tape()->transposed(g, layer.weight);
    }
    if (layer.transposed) {
        return layer.transposed;
    }
    // Made anew for every use: whoever keeps no transposes is short of memory.
    return transpose_copy(g, decoded(g, layer.weight));
}

void linear_backward(Graph & g, const Linear & layer, Node x, Node low, Node dy) {
    ggml_context * ctx  = g.ctx();
    Tape &         tape = *g.tape();
    if (tape.wants(layer.bias)) {
        tape.accumulate(g, layer.bias, sum_to(g, dy, layer.bias));
    }
    if (tape.wants(layer.weight)) {
        tape.accumulate_product(g, layer.weight, x, dy);
    }
    Node dx = tape.wants(x) ? ggml_mul_mat(ctx, weight_transposed(g, layer), dy) : nullptr;

    const LoraPair & lora = layer.lora;
    if (tape.wants(lora.b)) {
        tape.accumulate_product(g, lora.b, low, dy);
    }
    if (lora.a && (tape.wants(lora.a) || dx)) {
        Node d_low = ggml_mul_mat(ctx, tape.transposed(g, lora.b), dy); // [rank, rows]
        if (lora.scale != 1.0f) {
            d_low = ggml_scale(ctx, d_low, lora.scale);
        }
        if (tape.wants(lora.a)) {
            tape.accumulate_product(g, lora.a, x, d_low);
        }
        if (dx) {
            dx = ggml_add(ctx, dx, ggml_mul_mat(ctx, tape.transposed(g, lora.a), d_low));
        }
    }
    if (dx) {
        tape.accumulate(g, x, dx);
    }
}

} // namespace

Node linear(Graph & g, const Linear & layer, Node x) {
    ggml_context *   ctx  = g.ctx();
    const LoraPair & lora = layer.lora;
    Node             y    = ggml_mul_mat(ctx, layer.weight, x); // [n_out, rows]
    Node             low  = nullptr;
    if (lora.a) {
        low = ggml_mul_mat(ctx, lora.a, x); // [rank, rows]
        if (lora.scale != 1.0f) {
            low = ggml_scale(ctx, low, lora.scale); // here it touches rank numbers a row instead of n_out
        }
        y = ggml_add(ctx, y, ggml_mul_mat(ctx, lora.b, low));
    }
    if (layer.bias) {
        y = ggml_add(ctx, y, layer.bias);
    }

    Tape * tape = g.tape();
    if (!tape) {
        return y;
    }
    bool wanted = tape->wants(x) || tape->wants(layer.bias);
    for (Node weight : {layer.weight, lora.a, lora.b}) {
        if (tape->wants(weight)) {
            tape->expect_product(weight);
            wanted = true;
        }
    }
    if (wanted) {
        tape->record(y, [layer, x, low](Graph & graph, Node dy) { linear_backward(graph, layer, x, low, dy); });
    }
    return y;
}

Node embed(Graph & g, Node table, Node ids) {
    Node y = ggml_get_rows(g.ctx(), table, ids);
    if (g.tape() && g.tape()->wants(table)) {
        g.tape()->record(y, [table, ids](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, table, ggml_get_rows_back(graph.ctx(), dy, ids, table));
        });
    }
    return y;
}

} // namespace penelope
