// Llama: a dense decoder. RoPE rotates adjacent features in GGUF and features half a head apart at Hugging Face, so the
// rows of q and k are permuted.
#include "arch/llama/llama.h"

#include "arch/blocks.h"
#include "base/error.h"

#include <algorithm>

namespace penelope {

namespace {

class LlamaLayer : public Layer {
  public:
    void list_tensors(const ModelConfig & c, TensorTable & table) override {
        const TensorPermutation pairs = TensorPermutation::rotary_pairs(c.head_dim);
        AttentionWeights &      a     = w_.attention;
        table.norm(w_.attn_norm, "attn_norm", "input_layernorm", c.n_embd);
        table.projection(a.q, "attn_q", "self_attn.q_proj", c.n_embd, c.n_embd_q()).rows  = pairs;
        table.projection(a.k, "attn_k", "self_attn.k_proj", c.n_embd, c.n_embd_kv()).rows = pairs;
        table.projection(a.v, "attn_v", "self_attn.v_proj", c.n_embd, c.n_embd_kv());
        table.projection(a.o, "attn_output", "self_attn.o_proj", c.n_embd_q(), c.n_embd).writes_residual = true;
        table.norm(w_.ffn_norm, "ffn_norm", "post_attention_layernorm", c.n_embd);
        list_feed_forward_tensors(w_.ffn, c, table);
        optional_bias(table, a.q, "attn_q", c.n_embd_q());
        optional_bias(table, a.k, "attn_k", c.n_embd_kv());
        optional_bias(table, a.v, "attn_v", c.n_embd_kv());
        optional_bias(table, a.o, "attn_output", c.n_embd);
        optional_bias(table, w_.ffn.gate, "ffn_gate", c.n_ff);
        optional_bias(table, w_.ffn.up, "ffn_up", c.n_ff);
        optional_bias(table, w_.ffn.down, "ffn_down", c.n_embd);
    }

    StateShape state(const ModelConfig &) const override { return {}; }

    Node build(Graph & g, const LayerCall & call, Node x) const override { return dense_layer(g, call, w_, x); }

  private:
    // Some GGUF files have them; checkpoints with biases are not converted.
    static void optional_bias(TensorTable & table, Linear & layer, const char * gguf, int64_t n_out) {
        TensorSpec & spec = table.bias(layer, gguf, "", n_out);
        spec.hf.clear();
        spec.is_optional = true;
    }

    DenseWeights w_;
};

} // namespace

std::unique_ptr<Layer> make_llama_layer(const ModelConfig &, int) {
    return std::make_unique<LlamaLayer>();
}

void refuse_hf_biases(const Json & json, const std::string & path) {
    for (const char * flag : { "attention_bias", "mlp_bias" }) {
        if (json_find<bool>(json, flag, path).value_or(false)) {
            throw Error(ErrorKind::unsupported, path + ": " + flag + " is not supported");
        }
    }
}

void write_hf_no_biases(OrderedJson & json) {
    json["attention_bias"] = false;
    json["mlp_bias"]       = false;
}

namespace {

// Mistral's first version has a sliding window, for which files of this architecture have no key. In a context no
// longer than the window there is nothing to hide.
void read_hf(const Json & json, const std::string & path, ModelConfig & c) {
    refuse_hf_biases(json, path);
    if (const auto window = json_find<int64_t>(json, "sliding_window", path); window && *window > 0) {
        c.n_ctx_train = int(std::min<int64_t>(c.n_ctx_train, *window));
    }
}

void write_hf(const ModelConfig &, OrderedJson & json) {
    write_hf_no_biases(json);
}

KnownShape shape(const char * name, int n_layer, int n_embd, int n_ff, int n_head, int n_head_kv, int n_vocab,
                 int n_ctx, float rope_base, int start) {
    ModelConfig c;
    c.architecture = "llama";
    c.name         = name;
    c.n_layer      = n_layer;
    c.n_embd       = n_embd;
    c.n_ff         = n_ff;
    c.n_head       = n_head;
    c.n_head_kv    = n_head_kv;
    c.head_dim     = n_embd / n_head;
    c.n_vocab      = n_vocab;
    c.n_ctx_train  = n_ctx;
    c.rope_base    = rope_base;
    return { name, c, start };
}

} // namespace

const Architecture & llama_architecture() {
    static const Architecture architecture = [] {
        Architecture a;
        a.name        = "llama";
        a.hf_types    = { "llama", "mistral" };
        a.hf_class    = "LlamaForCausalLM";
        a.make_layer  = make_llama_layer;
        a.rope_mode   = GGML_ROPE_TYPE_NORMAL;
        a.scaled_rope = true;
        a.read_hf     = read_hf;
        a.write_hf    = write_hf;
        a.shapes      = {
                 shape("llama-3.2-1b", 16, 2048, 8192, 32, 8, 128256, 131072, 500000.0f, 11),
                 shape("smollm2-135m", 30, 576, 1536, 9, 3, 49152, 8192, 100000.0f, 21),
        };
        return a;
    }();
    return architecture;
}

} // namespace penelope
