// Qwen2 and Qwen2.5, dense: q, k and v have biases.
#include "arch/architecture.h"
#include "arch/blocks.h"
#include "base/error.h"

namespace penelope {

namespace {

class Qwen2Layer : public Layer {
  public:
    void list_tensors(const ModelConfig & c, TensorTable & table) override {
        AttentionWeights & a = w_.attention;
        table.norm(w_.attn_norm, "attn_norm", "input_layernorm", c.n_embd);
        table.projection(a.q, "attn_q", "self_attn.q_proj", c.n_embd, c.n_embd_q());
        table.projection(a.k, "attn_k", "self_attn.k_proj", c.n_embd, c.n_embd_kv());
        table.projection(a.v, "attn_v", "self_attn.v_proj", c.n_embd, c.n_embd_kv());
        table.bias(a.q, "attn_q", "self_attn.q_proj", c.n_embd_q());
        table.bias(a.k, "attn_k", "self_attn.k_proj", c.n_embd_kv());
        table.bias(a.v, "attn_v", "self_attn.v_proj", c.n_embd_kv());
        table.projection(a.o, "attn_output", "self_attn.o_proj", c.n_embd_q(), c.n_embd).writes_residual = true;
        table.norm(w_.ffn_norm, "ffn_norm", "post_attention_layernorm", c.n_embd);
        list_feed_forward_tensors(w_.ffn, c, table);
    }

    StateShape state(const ModelConfig &) const override { return {}; }

    Node build(Graph & g, const LayerCall & call, Node x) const override { return dense_layer(g, call, w_, x); }

  private:
    DenseWeights w_;
};

void read_hf(const Json & json, const std::string & path, ModelConfig &) {
    if (json_find<bool>(json, "use_sliding_window", path).value_or(false)) {
        throw Error(ErrorKind::unsupported, path + ": use_sliding_window is not supported");
    }
}

void write_hf(const ModelConfig &, OrderedJson & json) {
    json["use_sliding_window"] = false;
}

KnownShape qwen2_5_0_5b() {
    ModelConfig c;
    c.architecture = "qwen2";
    c.name         = "qwen2.5-0.5b";
    c.n_layer      = 24;
    c.n_embd       = 896;
    c.n_ff         = 4864;
    c.n_head       = 14;
    c.n_head_kv    = 2;
    c.head_dim     = 64;
    c.n_vocab      = 151936;
    c.n_ctx_train  = 32768;
    c.rms_eps      = 1e-6f;
    c.rope_base    = 1000000.0f;
    return { "qwen2.5-0.5b", c, 16 };
}

} // namespace

const Architecture & qwen2_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name       = "qwen2";
        a.hf_types   = { "qwen2" };
        a.hf_class   = "Qwen2ForCausalLM";
        a.make_layer = [](const ModelConfig &, int) { return std::unique_ptr<Layer>(new Qwen2Layer); };
        a.rope_mode  = GGML_ROPE_TYPE_NEOX;
        a.read_hf    = read_hf;
        a.write_hf   = write_hf;
        a.shapes     = { qwen2_5_0_5b() };
        return a;
    }();
    return architecture;
}

} // namespace penelope
