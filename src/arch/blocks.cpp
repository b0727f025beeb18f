#include "arch/blocks.h"

namespace penelope {

namespace {

// RMS norm of each head of x [head_dim * n_head, rows].
Node norm_heads(Graph & g, Node x, Node weight, int head_dim, float eps) {
    if (!weight) {
        return x;
    }
    const int64_t n_features = x->ne[0], n_rows = x->ne[1];
    Node          heads = reshape_rows(g, x, head_dim, n_features / head_dim * n_rows);
    return reshape_rows(g, rms_norm(g, heads, weight, eps), n_features, n_rows);
}

} // namespace

Node select_output_rows(Graph & g, Node x, const OutputRows & output_rows) {
    set_dropout_rows(g, output_rows.segments);
    return output_rows.index ? gather_rows(g, x, output_rows.index)
                             : slice_rows(g, x, output_rows.first, output_rows.count);
}

void write_keys_and_values(Graph & g, const LayerCall & call, const AttentionWeights & w, Node normed) {
    Node k = linear(g, w.k, normed); // [n_embd_kv, n_rows]
    write_keys_and_values(g, call, w, k, linear(g, w.v, normed));
}

void write_keys_and_values(Graph & g, const LayerCall & call, const AttentionWeights & w, Node k, Node v) {
    const ModelConfig & c = call.config;
    k                     = norm_heads(g, k, w.k_norm, c.head_dim, c.rms_eps);
    call.state.write(g, call.il, rope(g, k, call.rows.positions, c.head_dim, call.rope), v, call.rows);
    if (call.has_no_output_rows()) {
        g.mark_layer_application(v);
    }
}

namespace {

// q [head_dim * n_head, rows] after RoPE -> attention output of the same shape.
Node attend_batched(Graph & g, const LayerCall & call, const BatchedAttention & batched, Node q,
                    const AttentionShape & shape) {
    const int64_t n_features = q->ne[0], n = q->ne[1] / batched.count;
    const int64_t n_streams = batched.row_of_stream->ne[0];
    const Kv      seen      = call.state.read_all(g, call.il, batched.n_kv);
    Node          mask      = call.config.window_of(call.il) > 0 ? batched.window_mask : batched.mask;
    Node          asked     = gather_rows(g, reshape_rows(g, q, n_features * batched.count, n), batched.row_of_stream);
    Node mix = batched_attention(g, ggml_reshape_3d(g.ctx(), asked, n_features, batched.count, n_streams), seen.k,
                                 seen.v, mask, shape);
    mix      = reshape_rows(g, mix, n_features * batched.count, n_streams);
    return reshape_rows(g, gather_rows(g, mix, batched.stream_of_row), n_features, q->ne[1]);
}

} // namespace

Node attend(Graph & g, const LayerCall & call, const AttentionWeights & w, Node q) {
    const ModelConfig &          c = call.config;
    const AttentionShape         shape{ c.head_dim, c.n_head, c.n_head_kv, c.score_scale() };
    const std::vector<Segment> & segments  = call.output_rows ? call.output_rows->segments : call.rows.segments;
    Node                         positions = call.output_rows ? call.output_rows->positions : call.rows.positions;
    q = rope(g, norm_heads(g, q, w.q_norm, c.head_dim, c.rms_eps), positions, c.head_dim, call.rope);
    if (const BatchedAttention & batched = call.output_rows ? call.output_rows->batched : call.rows.batched;
        batched.count > 0) {
        return attend_batched(g, call, batched, q, shape);
    }
    std::vector<Node> parts;
    for (const Segment & segment : segments) {
        const Kv seen    = call.state.read(g, call.il, segment);
        Node     queries = slice_rows(g, q, segment.first, segment.count);
        Node     mask    = c.window_of(call.il) > 0 ? segment.window_mask : segment.mask;
        if (segment.n_queries > segment.count) {
            Node all = attention(g, pad_rows(g, queries, segment.n_queries), seen.k, seen.v, mask, shape);
            parts.push_back(slice_rows(g, all, 0, segment.count));
        } else {
            parts.push_back(attention(g, queries, seen.k, seen.v, mask, shape));
        }
    }
    return concat_rows(g, parts);
}

Node add_residual(Graph & g, const ModelConfig & config, Node x, Node block) {
    return add(g, x, config.residual_scale == 1.0f ? block : scale(g, block, config.residual_scale));
}

Node feed_forward(Graph & g, const FeedForwardWeights & w, Node x) {
    return linear(g, w.down, swiglu(g, linear(g, w.gate, x), linear(g, w.up, x))); // [n_ff, n_rows] inside
}

void list_feed_forward_tensors(FeedForwardWeights & w, const ModelConfig & config, TensorTable & table) {
    table.projection(w.gate, "ffn_gate", "mlp.gate_proj", config.n_embd, config.n_ff);
    table.projection(w.up, "ffn_up", "mlp.up_proj", config.n_embd, config.n_ff);
    table.projection(w.down, "ffn_down", "mlp.down_proj", config.n_ff, config.n_embd).writes_residual = true;
}

Node dense_layer(Graph & g, const LayerCall & call, const DenseWeights & w, Node x) {
    const float eps    = call.config.rms_eps;
    Node        normed = rms_norm(g, x, w.attn_norm, eps); // [n_embd, n_rows]
    write_keys_and_values(g, call, w.attention, normed);
    if (call.has_no_output_rows()) {
        return nullptr;
    }
    if (call.output_rows) {
        x      = select_output_rows(g, x, *call.output_rows);
        normed = select_output_rows(g, normed, *call.output_rows);
    }
    Node mix = attend(g, call, w.attention, linear(g, w.attention.q, normed));
    x        = add_residual(g, call.config, x, linear(g, w.attention.o, mix));
    x        = add_residual(g, call.config, x, feed_forward(g, w.ffn, rms_norm(g, x, w.ffn_norm, eps)));
    g.mark_layer_application(g.named(x, "layer.%d", call.il));
    return x;
}

} // namespace penelope
