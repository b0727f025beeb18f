// Linear layers with optional LoRA, and the embedding lookup.
#include "graph/ops.h"

#include "graph/kernels.h"
#include "graph/nodes.h"
#include "graph/tape.h"

namespace penelope {

namespace {

// [n_out, n_in] for dx = W^T dy.
Node weight_transposed(Graph & g, const Linear & layer) {
    if (g.tape()->requires_grad(layer.weight)) {
        return g.tape()->transposed(g, layer.weight);
    }
    if (layer.transposed) {
        return layer.transposed;
    }
    // Not cached: a trainer that stores no transposes wants to save memory.
    return transpose_copy(g, dequantized(g, layer.weight));
}

// y + B low, in place where possible (nothing else reads y): B [rank, n_out], low [rank, rows].
Node add_low_rank(Graph & g, Node y, Node b, Node low) {
    if (g.tape() && g.tape()->host_kernels()) {
        return cpu_add_low_rank(g, y, g.tape()->transposed(g, b), low);
    }
    return ggml_add(g.ctx(), y, matrix_product(g, b, low));
}

// dx + A^T d_low, in place where possible (nothing else reads dx; dx may be null): A [n_in, rank], d_low [rank, rows].
Node transposed_low_rank(Graph & g, Node dx, Node a, Node d_low) {
    if (g.tape()->host_kernels()) {
        return dx ? cpu_add_low_rank(g, dx, a, d_low) : cpu_low_rank(g, a, d_low);
    }
    Node product = matrix_product(g, g.tape()->transposed(g, a), d_low);
    return dx ? ggml_add(g.ctx(), dx, product) : product;
}

// Input of the LoRA pair: x, or dropout(x) in training.
Node lora_input(Graph & g, const LoraPair & lora, Node x) {
    if (!g.tape() || !lora.dropout) {
        return x;
    }
    Tape::DroppedInput & dropped = g.tape()->dropped_input(x);
    if (!dropped.node) {
        const int64_t number = g.next_draw();
        g.set_next_draw(number);
        dropped.node = dropout(g, x, *lora.dropout);
        dropped.draw = { number, g.dropout_rows() };
    }
    return dropped.node;
}

// The same in the backward pass, recomputed.
Node lora_input_again(Graph & g, const LoraPair & lora, Node x) {
    if (!lora.dropout) {
        return x;
    }
    Tape::DroppedInput & dropped = g.tape()->dropped_input(x);
    if (!dropped.recomputed) {
        dropped.recomputed = dropout_again(g, x, *lora.dropout, dropped.draw);
    }
    return dropped.recomputed;
}

// Nodes the backward needs: x, the input of the LoRA pair, and scale * A x.
struct LinearNodes {
    Node x;
    Node lora_x;
    Node low; // [rank, rows]
};

void linear_backward(Graph & g, const Linear & layer, const LinearNodes & nodes, Node dy) {
    ggml_context * ctx  = g.ctx();
    Tape &         tape = *g.tape();
    if (tape.requires_grad(layer.bias)) {
        tape.accumulate(g, layer.bias, sum_to(g, dy, layer.bias));
    }
    if (tape.requires_grad(layer.weight)) {
        tape.accumulate_product(g, layer.weight, nodes.x, dy);
    }
    Node dx = tape.requires_grad(nodes.x) ? matrix_product(g, weight_transposed(g, layer), dy) : nullptr;

    const LoraPair & lora = layer.lora;
    if (tape.requires_grad(lora.b)) {
        tape.accumulate_product(g, lora.b, nodes.low, dy);
    }
    if (lora.a && (tape.requires_grad(lora.a) || dx)) {
        Node d_low = matrix_product(g, tape.transposed(g, lora.b), dy); // [rank, rows]
        if (lora.scale != 1.0f) {
            d_low = ggml_scale(ctx, d_low, lora.scale);
        }
        if (tape.requires_grad(lora.a)) {
            tape.accumulate_product(g, lora.a, lora_input_again(g, lora, nodes.x), d_low);
        }
        if (dx && nodes.lora_x == nodes.x) {
            dx = transposed_low_rank(g, dx, lora.a, d_low);
        } else if (dx) {
            tape.accumulate(g, nodes.lora_x, transposed_low_rank(g, nullptr, lora.a, d_low));
        }
    }
    if (dx) {
        tape.accumulate(g, nodes.x, dx);
    }
}

} // namespace

Node linear(Graph & g, const Linear & layer, Node x) {
    ggml_context *   ctx  = g.ctx();
    const LoraPair & lora = layer.lora;
    Node             y    = matrix_product(g, layer.weight, x); // [n_out, rows]
    LinearNodes      nodes{ x, nullptr, nullptr };
    if (lora.a) {
        nodes.lora_x = lora_input(g, lora, x);
        nodes.low    = matrix_product(g, lora.a, nodes.lora_x); // [rank, rows]
        if (lora.scale != 1.0f) {
            nodes.low =
                ggml_scale(ctx, nodes.low, lora.scale); // scaling here costs rank elements per row instead of n_out
        }
        y = add_low_rank(g, y, lora.b, nodes.low);
    }
    if (layer.bias) {
        y = ggml_add(ctx, y, layer.bias);
    }

    Tape * tape = g.tape();
    if (!tape) {
        return y;
    }
    bool needs_grad = tape->requires_grad(x) || tape->requires_grad(layer.bias);
    for (Node weight : { layer.weight, lora.a, lora.b }) {
        if (tape->requires_grad(weight)) {
            tape->expect_product(weight);
            needs_grad = true;
        }
    }
    if (needs_grad) {
        tape->record(y, [layer, nodes](Graph & graph, Node dy) { linear_backward(graph, layer, nodes, dy); });
    }
    return y;
}

Node embed(Graph & g, Node table, Node ids) {
    Node y = ggml_get_rows(g.ctx(), table, ids);
    if (g.tape() && g.tape()->requires_grad(table)) {
        g.tape()->record(y, [table, ids](Graph & graph, Node dy) {
            graph.tape()->accumulate(graph, table, ggml_get_rows_back(graph.ctx(), dy, ids, table));
        });
    }
    return y;
}

} // namespace penelope
