// Qwen3, dense: head_dim is independent of n_embd; RMS norm per query and key head before RoPE.
#include "arch/architecture.h"
#include "arch/blocks.h"
#include "base/error.h"

namespace penelope {

namespace {

class Qwen3Layer : public Layer {
  public:
    void list_tensors(const ModelConfig & c, TensorTable & table) override {
        AttentionWeights & a = w_.attention;
        table.norm(w_.attn_norm, "attn_norm", "input_layernorm", c.n_embd);
        table.projection(a.q, "attn_q", "self_attn.q_proj", c.n_embd, c.n_embd_q());
        table.projection(a.k, "attn_k", "self_attn.k_proj", c.n_embd, c.n_embd_kv());
        table.projection(a.v, "attn_v", "self_attn.v_proj", c.n_embd, c.n_embd_kv());
        table.projection(a.o, "attn_output", "self_attn.o_proj", c.n_embd_q(), c.n_embd).writes_residual = true;
        table.norm(a.q_norm, "attn_q_norm", "self_attn.q_norm", c.head_dim);
        table.norm(a.k_norm, "attn_k_norm", "self_attn.k_norm", c.head_dim);
        table.norm(w_.ffn_norm, "ffn_norm", "post_attention_layernorm", c.n_embd);
        list_feed_forward_tensors(w_.ffn, c, table);
    }

    StateShape state(const ModelConfig &) const override { return {}; }

    Node build(Graph & g, const LayerCall & call, Node x) const override { return dense_layer(g, call, w_, x); }

  private:
    DenseWeights w_;
};

void read_hf(const Json & json, const std::string & path, ModelConfig &) {
    for (const char * flag : { "attention_bias", "use_sliding_window" }) {
        if (json_find<bool>(json, flag, path).value_or(false)) {
            throw Error(ErrorKind::unsupported, path + ": " + flag + " is not supported");
        }
    }
}

void write_hf(const ModelConfig &, OrderedJson & json) {
    json["attention_bias"]     = false;
    json["use_sliding_window"] = false;
}

KnownShape qwen3_0_6b() {
    ModelConfig c;
    c.architecture = "qwen3";
    c.name         = "qwen3-0.6b";
    c.n_layer      = 28;
    c.n_embd       = 1024;
    c.n_ff         = 3072;
    c.n_head       = 16;
    c.n_head_kv    = 8;
    c.head_dim     = 128;
    c.has_head_dim = true;
    c.n_vocab      = 151936;
    c.n_ctx_train  = 40960;
    c.rms_eps      = 1e-6f;
    c.rope_base    = 1000000.0f;
    return { "qwen3-0.6b", c, 19 };
}

} // namespace

const Architecture & qwen3_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name       = "qwen3";
        a.hf_types   = { "qwen3" };
        a.hf_class   = "Qwen3ForCausalLM";
        a.make_layer = [](const ModelConfig &, int) { return std::unique_ptr<Layer>(new Qwen3Layer); };
        a.rope_mode  = GGML_ROPE_TYPE_NEOX;
        a.read_hf    = read_hf;
        a.write_hf   = write_hf;
        a.shapes     = { qwen3_0_6b() };
        return a;
    }();
    return architecture;
}

} // namespace penelope
