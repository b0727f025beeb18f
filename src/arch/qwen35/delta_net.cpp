// The gated delta net: a recurrent layer in place of attention. With n = rmsnorm(x):
//   q, k, v = silu(conv(W_qkv n)), q and k of unit length per head
//   beta = sigmoid(W_beta n), decay = rate * softplus(W_alpha n + step)
//   y = the delta rule over q, k, v, decay, beta (graph/ops_delta.h)
//   x += W_out (rmsnorm(y) * silu(W_gate n));  x += feed_forward(rmsnorm(x)).
// Recurrent state: the last rows before the convolution and the matrix of the delta rule.
#include "arch/qwen35/layers.h"

#include <cmath>

namespace penelope {

namespace {

constexpr float kUnitEps = 1e-6f; // added to the squared length of q and k

// Features [first, first + count) of every row; a view in inference.
Node features(Graph & g, Node x, int64_t first, int64_t count) {
    if (g.tape()) {
        return slice_features(g, x, first, count);
    }
    return ggml_view_2d(g.ctx(), x, count, x->ne[1], x->nb[1], size_t(first) * x->nb[0]);
}

// Each head of `count` features scaled to length one: x / sqrt(|x|^2 + eps).
Node unit_heads(Graph & g, Node x, int64_t first, int64_t count, int head_dim) {
    const int64_t n     = x->ne[1];
    Node          heads = reshape_rows(g, slice_features(g, x, first, count), head_dim, count / head_dim * n);
    Node          unit  = rms_norm(g, heads, nullptr, kUnitEps / float(head_dim));
    return reshape_rows(g, scale(g, unit, 1.0f / std::sqrt(float(head_dim))), count, n);
}

// [1, count]: 1 for valid rows of a padded segment, 0 for padding.
Node valid_rows(Graph & g, const Segment & segment) {
    ggml_context * ctx  = g.ctx();
    Node           rows = ggml_arange(ctx, 0.0f, float(segment.count), 1.0f);
    Node           left = ggml_add(ctx, ggml_scale_bias(ctx, rows, -1.0f, -0.5f), segment.valid_count);
    return ggml_reshape_2d(ctx, ggml_step(ctx, left), 1, segment.count);
}

} // namespace

void Qwen35DeltaNet::list_tensors(const ModelConfig & c, TensorTable & table) {
    const Qwen35Config & arch_config = qwen35_config(c);
    const int64_t groups = arch_config.n_key_heads, per_group = arch_config.n_value_heads / arch_config.n_key_heads;
    const auto    values = [&](int64_t first = 0) {
        return TensorPermutation::tiled_heads(arch_config.state_dim, groups, per_group, first);
    };
    const TensorPermutation heads    = TensorPermutation::tiled_heads(1, groups, per_group);
    const int64_t           channels = arch_config.n_channels(), n_value = arch_config.n_value_features();

    table.norm(attn_norm_, "attn_norm", "input_layernorm", c.n_embd);
    table.projection(qkv_, "attn_qkv", "linear_attn.in_proj_qkv", c.n_embd, channels).rows =
        values(2 * arch_config.n_key_features());
    table.projection(gate_, "attn_gate", "linear_attn.in_proj_z", c.n_embd, n_value).rows                = values();
    table.matrix(alpha_, "ssm_alpha", "linear_attn.in_proj_a", c.n_embd, arch_config.n_value_heads).rows = heads;
    table.matrix(beta_, "ssm_beta", "linear_attn.in_proj_b", c.n_embd, arch_config.n_value_heads).rows   = heads;

    TensorSpec & conv =
        table.vector(conv_, "ssm_conv1d.weight", "linear_attn.conv1d.weight", { arch_config.conv_kernel, channels });
    conv.rows     = values(2 * arch_config.n_key_features());
    conv.hf_shape = { channels, 1, arch_config.conv_kernel };
    conv.start    = 1.0f / float(arch_config.conv_kernel);

    table.vector(step_, "ssm_dt.bias", "linear_attn.dt_bias", { arch_config.n_value_heads }).rows = heads;
    TensorSpec & rate = table.vector(rate_, "ssm_a", "linear_attn.A_log", { arch_config.n_value_heads });
    rate.rows         = heads;
    rate.value        = ValueTransform::minus_exp;
    rate.start        = -1.0f;
    table.norm(norm_, "ssm_norm", "linear_attn.norm", arch_config.state_dim).value = ValueTransform::same;
    TensorSpec & out    = table.projection(out_, "ssm_out", "linear_attn.out_proj", n_value, c.n_embd);
    out.columns         = values();
    out.writes_residual = true;

    table.norm(ffn_norm_, "post_attention_norm", "post_attention_layernorm", c.n_embd);
    list_feed_forward_tensors(ffn_, c, table);
}

StateShape Qwen35DeltaNet::state(const ModelConfig & c) const {
    const Qwen35Config & arch_config = qwen35_config(c);
    return { false,
             { int64_t(arch_config.n_channels()) * (arch_config.conv_kernel - 1),
               int64_t(arch_config.state_dim) * arch_config.state_dim * arch_config.n_value_heads } };
}

// The recurrence over every row of the call, segment by segment: [S * n_value_heads, n_rows].
Node Qwen35DeltaNet::mix(Graph & g, const LayerCall & call, Node normed) const {
    const Qwen35Config & arch_config = qwen35_config(call.config);
    const int64_t        n_key       = arch_config.n_key_features();
    Node                 all_qkv     = linear(g, qkv_, normed);                            // [channels, n_rows]
    Node                 all_beta    = sigmoid(g, linear(g, beta_, normed));               // [n_value_heads, n_rows]
    Node all_decay = mul(g, softplus(g, add(g, linear(g, alpha_, normed), step_)), rate_); // likewise, at most 0

    std::vector<Node> parts;
    for (const Segment & s : call.rows.segments) {
        const std::vector<Node> before = call.state.read_recurrent(g, call.il, s);
        const Convolved         conv   = causal_conv(g, slice_rows(g, all_qkv, s.first, s.count), conv_,
                                           before.empty() ? nullptr : before[0], s.valid_count);
        Node                    qkv    = silu(g, conv.y);
        Node                    unit   = unit_heads(g, qkv, 0, 2 * n_key, arch_config.state_dim);
        Node                    beta   = slice_rows(g, all_beta, s.first, s.count);
        Node                    decay  = slice_rows(g, all_decay, s.first, s.count);
        if (s.valid_count) {
            // Padding must not change the state: decay 0 and beta 0.
            Node real = valid_rows(g, s);
            beta      = mul(g, beta, real);
            decay     = mul(g, decay, real);
        }
        const DeltaResult result = gated_delta(g, features(g, unit, 0, n_key), features(g, unit, n_key, n_key),
                                               features(g, qkv, 2 * n_key, arch_config.n_value_features()), decay, beta,
                                               before.empty() ? nullptr : before[1], arch_config.delta());
        call.state.write_recurrent(g, call.il, s, { conv.tail, result.state });
        parts.push_back(result.y);
    }
    return concat_rows(g, parts);
}

Node Qwen35DeltaNet::build(Graph & g, const LayerCall & call, Node x) const {
    const ModelConfig & c      = call.config;
    Node                normed = rms_norm(g, x, attn_norm_, c.rms_eps); // [n_embd, n_rows]
    Node                mixed  = mix(g, call, normed);
    if (call.has_no_output_rows()) {
        g.mark_layer_application(normed);
        return nullptr;
    }
    if (call.output_rows) {
        x      = select_output_rows(g, x, *call.output_rows);
        normed = select_output_rows(g, normed, *call.output_rows);
        mixed  = select_output_rows(g, mixed, *call.output_rows);
    }
    const int64_t n_features = mixed->ne[0], n_rows = mixed->ne[1], S = qwen35_config(c).state_dim;
    Node          heads  = reshape_rows(g, mixed, S, n_features / S * n_rows);
    Node          scaled = reshape_rows(g, rms_norm(g, heads, norm_, c.rms_eps), n_features, n_rows);
    x                    = add(g, x, linear(g, out_, swiglu(g, linear(g, gate_, normed), scaled)));
    x                    = add(g, x, feed_forward(g, ffn_, rms_norm(g, x, ffn_norm_, c.rms_eps)));
    g.mark_layer_application(g.named(x, "layer.%d", call.il));
    return x;
}

} // namespace penelope
