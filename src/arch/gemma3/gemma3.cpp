// Gemma 3, text: a norm before and after each block, norms of query and key heads, GELU, scaled embeddings. Five layers
// with a sliding window and a rotation of their own, then one that sees everything.
#include "arch/architecture.h"
#include "arch/blocks.h"
#include "arch/gemma3/config.h"

namespace penelope {

namespace {

class Gemma3Layer : public Layer {
  public:
    void list_tensors(const ModelConfig & c, TensorTable & table) override {
        table.norm(attn_norm_, "attn_norm", "input_layernorm", c.n_embd);
        table.projection(w_.q, "attn_q", "self_attn.q_proj", c.n_embd, c.n_embd_q());
        table.projection(w_.k, "attn_k", "self_attn.k_proj", c.n_embd, c.n_embd_kv());
        table.projection(w_.v, "attn_v", "self_attn.v_proj", c.n_embd, c.n_embd_kv());
        table.projection(w_.o, "attn_output", "self_attn.o_proj", c.n_embd_q(), c.n_embd).writes_residual = true;
        table.norm(w_.q_norm, "attn_q_norm", "self_attn.q_norm", c.head_dim);
        table.norm(w_.k_norm, "attn_k_norm", "self_attn.k_norm", c.head_dim);
        table.norm(attn_post_norm_, "post_attention_norm", "post_attention_layernorm", c.n_embd);
        table.norm(ffn_norm_, "ffn_norm", "pre_feedforward_layernorm", c.n_embd);
        list_feed_forward_tensors(ffn_, c, table);
        table.norm(ffn_post_norm_, "post_ffw_norm", "post_feedforward_layernorm", c.n_embd);
    }

    StateShape state(const ModelConfig &) const override { return {}; }

    Node build(Graph & g, const LayerCall & call, Node x) const override {
        const float eps    = call.config.rms_eps;
        Node        normed = rms_norm(g, x, attn_norm_, eps); // [n_embd, n_rows]
        write_keys_and_values(g, call, w_, normed);
        if (call.has_no_output_rows()) {
            return nullptr;
        }
        if (call.output_rows) {
            x      = select_output_rows(g, x, *call.output_rows);
            normed = select_output_rows(g, normed, *call.output_rows);
        }
        Node mix  = linear(g, w_.o, attend(g, call, w_, linear(g, w_.q, normed)));
        x         = add(g, x, rms_norm(g, mix, attn_post_norm_, eps));
        normed    = rms_norm(g, x, ffn_norm_, eps);
        Node wide = mul(g, gelu_tanh(g, linear(g, ffn_.gate, normed)), linear(g, ffn_.up, normed)); // [n_ff, n_rows]
        x         = add(g, x, rms_norm(g, linear(g, ffn_.down, wide), ffn_post_norm_, eps));
        g.mark_layer_application(g.named(x, "layer.%d", call.il));
        return x;
    }

  private:
    Node               attn_norm_ = nullptr, attn_post_norm_ = nullptr, ffn_norm_ = nullptr, ffn_post_norm_ = nullptr;
    AttentionWeights   w_;
    FeedForwardWeights ffn_;
};

} // namespace

const Architecture & gemma3_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name              = "gemma3";
        a.hf_types          = { "gemma3_text", "gemma3" };
        a.hf_class          = "Gemma3ForCausalLM";
        a.make_layer        = [](const ModelConfig &, int) { return std::unique_ptr<Layer>(new Gemma3Layer); };
        a.rope_mode         = GGML_ROPE_TYPE_NEOX;
        a.linear_rope       = true;
        a.norms             = ValueTransform::one_plus;
        a.hf_prefixes       = { "model.language_model.", "language_model.model." };
        a.hf_skipped        = { "model.vision_tower.", "model.multi_modal_projector.", "vision_tower.",
                                "multi_modal_projector." };
        a.hf_activation_key = "hidden_activation";
        a.hf_activation     = "gelu_pytorch_tanh";
        a.hf_tied           = true;
        a.read_gguf         = read_gemma3_gguf;
        a.write_gguf        = write_gemma3_gguf;
        a.read_hf           = read_gemma3_hf;
        a.write_hf          = write_gemma3_hf;
        a.describe          = describe_gemma3;
        a.shapes = { gemma3_shape("gemma-3-270m", 18, 640, 2048), gemma3_shape("gemma-3-1b", 26, 1152, 6912) };
        return a;
    }();
    return architecture;
}

} // namespace penelope
