// Gated attention: each query head has an output gate, x += W_o (attention * sigmoid(gate)).
#include "arch/qwen35/layers.h"

namespace penelope {

namespace {

// W_q yields, per head, head_dim query features and then head_dim gate features. Selects one of the two: [2 * head_dim
// * n_head, n] -> [head_dim * n_head, n].
Node half_of_heads(Graph & g, Node both, int head_dim, int which) {
    const int64_t n_rows = both->ne[1], n_features = both->ne[0] / 2;
    Node          heads = reshape_rows(g, both, 2 * head_dim, n_features / head_dim * n_rows);
    return reshape_rows(g, slice_features(g, heads, which * head_dim, head_dim), n_features, n_rows);
}

} // namespace

void Qwen35Attention::list_tensors(const ModelConfig & c, TensorTable & table) {
    table.norm(attn_norm_, "attn_norm", "input_layernorm", c.n_embd);
    table.projection(w_.q, "attn_q", "self_attn.q_proj", c.n_embd, 2 * c.n_embd_q());
    table.projection(w_.k, "attn_k", "self_attn.k_proj", c.n_embd, c.n_embd_kv());
    table.projection(w_.v, "attn_v", "self_attn.v_proj", c.n_embd, c.n_embd_kv());
    table.projection(w_.o, "attn_output", "self_attn.o_proj", c.n_embd_q(), c.n_embd).writes_residual = true;
    table.norm(w_.q_norm, "attn_q_norm", "self_attn.q_norm", c.head_dim);
    table.norm(w_.k_norm, "attn_k_norm", "self_attn.k_norm", c.head_dim);
    table.norm(ffn_norm_, "post_attention_norm", "post_attention_layernorm", c.n_embd);
    list_feed_forward_tensors(ffn_, c, table);
}

Node Qwen35Attention::build(Graph & g, const LayerCall & call, Node x) const {
    const ModelConfig & c      = call.config;
    Node                normed = rms_norm(g, x, attn_norm_, c.rms_eps); // [n_embd, n_rows]
    write_keys_and_values(g, call, w_, normed);
    if (call.has_no_output_rows()) {
        return nullptr;
    }
    if (call.output_rows) {
        x      = select_output_rows(g, x, *call.output_rows);
        normed = select_output_rows(g, normed, *call.output_rows);
    }
    Node both = linear(g, w_.q, normed);
    Node mix  = attend(g, call, w_, half_of_heads(g, both, c.head_dim, 0)); // [n_embd_q, n_rows]
    Node gate = sigmoid(g, half_of_heads(g, both, c.head_dim, 1));
    x         = add(g, x, linear(g, w_.o, mul(g, mix, gate)));
    x         = add(g, x, feed_forward(g, ffn_, rms_norm(g, x, ffn_norm_, c.rms_eps)));
    g.mark_layer_application(g.named(x, "layer.%d", call.il));
    return x;
}

} // namespace penelope
